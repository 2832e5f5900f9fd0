"""The deployments of a LiteLLM proxy as providers, keys and models."""

from typing import Any, Final

from cluster_gw.settings.litellm_hosts import NOT_ID, Host, free_id, host_of
from cluster_gw.settings.litellm_reading import Reader

PER_MILLION: Final = 1_000_000
HEAVIEST: Final = 2.0
PRICE_DIGITS: Final = 9
LIMITS: Final = (("rpm", "rpm"), ("tpm", "tpm"), ("concurrency", "max_parallel_requests"))
PRICES: Final = (("input", "input_cost_per_token"), ("output", "output_cost_per_token"))
FLAGS: Final = (("tools", "supports_function_calling"), ("vision", "supports_vision"))
CHATTING: Final = frozenset({None, "chat", "completion", "responses"})
EMBEDDING: Final = "embedding"
NOT_NAMED: Final = "names no model, or all of a provider: name each model that is to be served"


class Pool:
    """Collects deployments.

    Args:
        reader: of the whole document, for notes.

    Attributes:
        providers: as our file would say it.
        groups: routes by the name that clients know, in order.
    """

    def __init__(self, reader: Reader) -> None:
        self.providers: dict[str, dict[str, Any]] = {}
        self.groups: dict[str, list[str]] = {}
        self._reader = reader
        self._models: dict[str, dict[str, Any]] = {}
        self._keys: dict[tuple[str, str], dict[str, Any]] = {}
        self._served: dict[tuple[str, str], list[str]] = {}
        self._weights: dict[str, float] = {}
        self._orders: dict[str, dict[str, float]] = {}
        self._places: dict[str, str] = {}
        self._literals: dict[tuple[str, str], str] = {}

    def add(self, item: Reader) -> None:
        """Take over one entry of `model_list`."""
        name = item.text("model_name")
        parameters, facts = item.section("litellm_params"), item.section("model_info")
        host = host_of(parameters)
        if name is None or host is None or "*" in f"{name}{host.model}":
            if name is None:
                item.note("model_name", "is missing")
            elif host is not None:
                parameters.note("model", NOT_NAMED)
            item.drop()
            return
        provider = self._provider(host)
        route = f"{provider}/{host.model}"
        self._places.setdefault(name, item.place)
        self._model(provider, host.model, parameters, facts)
        self._key(provider, host, parameters)
        if EMBEDDING in self._models[route]:  # asked for by the name of its family, in no combo
            self._models[route][EMBEDDING] = {"family": name}
            return
        members = self.groups.setdefault(name, [])
        if route not in members:
            members.append(route)
        order = parameters.number("order")
        if order is not None:
            self._orders.setdefault(name, {})[route] = order
            members.sort(key=lambda one: self._orders[name].get(one, order))

    def is_ordered(self, name: str) -> bool:
        """Whether deployments of a name say in which order they are tried."""
        return name in self._orders

    def note_group(self, name: str, text: str) -> None:
        """Say something about a name that clients know."""
        self._reader.notes.append(f"{self._places[name]}.model_name: {text}")

    def shown_models(self) -> list[dict[str, Any]]:
        """All models, as our file would say it; weights are shares of the heaviest."""
        most = max(self._weights.values(), default=0.0)
        for route, weight in self._weights.items():
            if most:
                self._models[route]["weight"] = round(HEAVIEST * weight / most, 6)
        return list(self._models.values())

    def shown_keys(self) -> list[dict[str, Any]]:
        """All keys; one that does not serve all models of its provider says which."""
        shown = []
        for place, key in self._keys.items():
            of_provider = [
                one["model"] for one in self._models.values() if one["provider"] == place[0]
            ]
            served = self._served[place]
            only = {} if set(served) == set(of_provider) else {"models": served}
            shown.append({**key, **only})
        return shown

    def _provider(self, host: Host) -> str:
        name, number = host.name, 1
        while self.providers.get(name, host.settings) != host.settings:
            number += 1
            name = f"{host.name}-{number}"
        self.providers[name] = host.settings
        return name

    def _model(self, provider: str, model: str, parameters: Reader, facts: Reader) -> None:
        route = f"{provider}/{model}"
        entry = self._models.setdefault(route, {"provider": provider, "model": model})
        limits = _limits(entry.get("limits", {}), route, parameters)
        price = _price(parameters, facts)
        entry |= {"limits": limits} if limits else {}
        entry |= {"price": price} if price else {}
        entry |= _facts(facts)
        weight = parameters.number("weight")
        if weight is not None:
            self._weights[route] = weight

    def _key(self, provider: str, host: Host, parameters: Reader) -> None:
        said = parameters.text("api_key")
        if said is None and host.variable is None:
            self.providers[provider] = {**host.settings, "keyless": True}
            return
        variable = self._variable(provider, host, parameters, said)
        place = (provider, variable)
        self._reader.variables.add(variable)
        if place not in self._keys:
            taken = {key["id"] for key in self._keys.values()}
            self._keys[place] = {
                "id": free_id(variable.lower(), taken),
                "provider": provider,
                "secret": f"env:{variable}",
            }
        served = self._served.setdefault(place, [])
        if host.model not in served:
            served.append(host.model)

    def _variable(self, provider: str, host: Host, parameters: Reader, said: str | None) -> str:
        """Name the variable that holds a key; a literal is not repeated."""
        if said is None:
            return host.variable or ""
        if said.startswith("os.environ/"):
            return said.removeprefix("os.environ/")
        literals = self._literals
        if (provider, said) not in literals:
            number = sum(of == provider for of, _ in literals) + 1
            head = NOT_ID.sub("_", provider).replace("-", "_").upper()
            literals[provider, said] = f"{head}_KEY_{number}"
        name = literals[provider, said]
        parameters.note("api_key", f"stands in the file; set {name} to it")
        return name


def _limits(before: dict[str, int], route: str, parameters: Reader) -> dict[str, int]:
    limits = dict(before)
    for own, name in LIMITS:
        said = parameters.number(name)
        if said is None:
            continue
        if limits.get(own, said) != said:
            parameters.note(name, f"{route} has one limit for each key: the smaller one is used")
        limits[own] = min(int(said), limits.get(own, int(said)))
    return limits


def _price(parameters: Reader, facts: Reader) -> dict[str, float]:
    price = {}
    for own, name in PRICES:
        cost, listed = parameters.number(name), facts.number(name)
        cost = listed if cost is None else cost
        if cost is not None:
            price[own] = round(cost * PER_MILLION, PRICE_DIGITS)
    return price


def _facts(facts: Reader) -> dict[str, Any]:
    found: dict[str, Any] = {}
    window = facts.number("max_input_tokens")
    if window:
        found["context_window"] = int(window)
    for own, name in FLAGS:
        flag = facts.flag(name)
        if flag is not None:
            found[own] = flag
    mode = facts.text("mode")
    if mode == EMBEDDING:
        found["embedding"] = {}
    elif mode not in CHATTING:
        facts.note("mode", f"'{mode}' is not served here; the model is taken for one of chat")
    return found
