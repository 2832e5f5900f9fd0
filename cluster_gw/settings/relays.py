"""One model behind several addresses: keys with an address of their own make routes of their own.

`provider/model` is the model at the provider's address, `provider/model@endpoint` at a relay's; the
endpoint is the handle of the relay's address. Limits, health and statistics of each stand apart.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from cluster_gw.core.routing.catalog import Group
from cluster_gw.core.routing.endpoints import handles_of, normalised
from cluster_gw.core.routing.groups import Grouped, group_routes
from cluster_gw.settings.bundled import provider_facts
from cluster_gw.settings.faults import Absent
from cluster_gw.settings.pool import KeySettings, ModelSettings, ProviderSettings, Settings
from cluster_gw.units import KeyId, RouteId

KEYLESS_SUFFIX: Final = "-keyless"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A route to be: a model at one address.

    Attributes:
        address: the relay's; None for the provider's own.
        endpoint: handle of the relay; empty for the provider's own.
        keys: that may serve it, the provider's own keyless entry among them.
    """

    model: ModelSettings
    address: str | None = None
    endpoint: str = ""
    keys: tuple[KeyId, ...] = ()

    @property
    def plain(self) -> str:
        """The id of its model, relays or not."""
        return f"{self.model.provider}/{self.model.model}"

    @property
    def id(self) -> RouteId:
        """The id of the route."""
        return RouteId(f"{self.plain}@{self.endpoint}" if self.endpoint else self.plain)


def places_of(settings: Settings) -> tuple[Place, ...]:
    """Give all routes in declared order: of a model its provider's own before its relays'."""
    keys: dict[str, list[KeySettings]] = {}
    for key in settings.keys:
        keys.setdefault(key.provider, []).append(key)
    found: list[Place] = []
    for model in settings.models:
        provider = settings.providers.get(model.provider, ProviderSettings())
        found += _places_of(model, provider, keys.get(model.provider, []))
    return tuple(found)


def _places_of(
    model: ModelSettings, provider: ProviderSettings, keys: Sequence[KeySettings]
) -> list[Place]:
    """Give the routes of a model; where all its keys are relays' there is none besides."""
    facts = provider_facts(provider, has_keys=bool(keys))
    home = normalised(facts.base_url)
    addresses = {key.id: normalised(key.base_url or home) for key in keys}
    handles = handles_of(address for address in addresses.values() if address != home)
    served: dict[str, list[KeyId]] = {}
    for key in keys:
        if key.models is None or model.model in key.models:
            served.setdefault(addresses[key.id], []).append(KeyId(key.id))
    own = served.pop(home, [])
    if facts.keyless:
        own.append(KeyId(f"{model.provider}{KEYLESS_SUFFIX}"))
    relays = [
        Place(model=model, address=address, endpoint=handles[address], keys=tuple(found))
        for address, found in served.items()
    ]
    if relays and not own:
        return relays
    return [Place(model=model, keys=tuple(own)), *relays]


def relays_by_model(places: Iterable[Place]) -> dict[str, list[RouteId]]:
    """Give the routes behind relays, by the id of the model they have in common."""
    found: dict[str, list[RouteId]] = {}
    for place in places:
        if place.endpoint:
            found.setdefault(place.plain, []).append(place.id)
    return found


def groups_of(settings: Settings, places: Iterable[Place]) -> tuple[Group, ...]:
    """Give the groups of models for chats; none where models are not unified."""
    unify = settings.unify
    if not unify.enabled:
        return ()
    chats = [grouped(place) for place in places if place.model.embedding is None]
    return group_routes(chats, unify.merges, unify.splits)


def grouped(place: Place) -> Grouped:
    """Give what grouping looks at."""
    model = place.model
    return Grouped(
        id=place.id,
        provider=model.provider,
        model=model.model,
        name=model.name or model.model,
        endpoint=place.endpoint,
        rank=model.intelligence_rank,
    )


def route_of(name: str, routes: Iterable[str]) -> str | None:
    """Tell the route a member names: by its id, or by its alias with `:` and `#`."""
    if isinstance(name, Absent):
        return None
    known = routes if isinstance(routes, AbstractSet | Mapping) else frozenset(routes)
    slashed = name.replace(":", "/", 1)
    model, mark, endpoint = slashed.rpartition("#")
    at = f"{model}@{endpoint}" if mark else None
    return next((one for one in (name, slashed, at) if one in known), None)


def routes_of(
    name: str,
    routes: Collection[str],
    relays: Mapping[str, Sequence[str]],
    own: Collection[str | None] = frozenset(),
) -> list[str]:
    """Give the routes a member stands for: of a model behind relays all that are not in `own`.

    Args:
        name: of the member.
        routes: of the catalogue.
        relays: its routes behind relays, by the id of their model.
        own: routes that have a place of their own.
    """
    exact = route_of(name, routes)
    behind = relays.get(name) or relays.get(name.replace(":", "/", 1)) or ()
    found = [] if exact is None else [exact]
    return found + [route for route in behind if route not in own and route != exact]
