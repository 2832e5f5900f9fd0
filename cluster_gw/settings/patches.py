"""What the overlay says, patch by patch, and how one is put over a document.

A patch may set a closed list of fields. Its values are taken as they are: no reference in them is
resolved, and neither secrets nor addresses are on the list (decision 0044). Secrets of keys that
were set at run time stand there sealed (decision 0075).
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.core.routing.resolution import ENDPOINT
from cluster_gw.settings.bundled import default_models
from cluster_gw.settings.faults import at_index, at_name, unknown
from cluster_gw.settings.relays import route_of
from cluster_gw.settings.sections import MAX_ENTRIES, CacheSettings, RoutingSettings
from cluster_gw.store.key_vault import SealedSecret

COMBO_FIELDS: Final = (
    *("family", "strategy", "weights", "members", "order", "sticky", "strategy_options"),
    "response",
)
MODEL_FIELDS: Final = (
    *("enabled", "weight", "tier", "intelligence_rank", "speed_rank", "context_window", "tools"),
    *("vision", "limits", "monthly_tokens", "quality_hint"),
)
CLIENT_FIELDS: Final = ("limits", "combos", "detail")
CLIENT_KEY_FIELDS: Final = ("enabled", "key_sha256", "previous_keys")
MADE_CLIENTS: Final = "made_clients"
CLIENT_KEYS: Final = "client_keys"
KEY_FIELDS: Final = ("enabled", "models", "limits", "caps")
KEY_SECRETS: Final = "key_secrets"
KEY_SECRET_FIELDS: Final = SealedSecret.__struct_fields__
ROUTING, CACHE, DEFAULT_COMBO = "routing", "cache", "default_combo"
SECTIONS: Final = (ROUTING, CACHE)
"""Of each field of these is a patch of its own."""
EPOCHS: Final = "epochs"
SETTING_FIELDS: Final = MappingProxyType(
    {
        ROUTING: RoutingSettings.__struct_fields__,
        CACHE: CacheSettings.__struct_fields__,
        DEFAULT_COMBO: ("combo",),
    }
)
WHOLE: Final = frozenset({"weights", "members", "order", "models", "forbidden_substrings"})
"""Fields that are replaced, not merged."""

Plain = dict[str, Any]


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """What is changed of one thing.

    Attributes:
        noun: `models`, `keys`, `key_secrets`, `profiles`, `combos`, `settings`, `clients`,
            `client_keys`, `made_clients` or `epochs`.
        id: a route, the id of a key, combo or client, `default_combo`, or a field of the section
            `routing` or `cache` such as `routing.headroom`.
        fields: their new values; of what they do not name the file says what holds.
    """

    noun: str
    id: str
    fields: Plain

    @property
    def name(self) -> str:
        """What it is called in logs and answers."""
        return f"{self.noun}.{self.id}"


class PatchError(Exception):
    """A patch does not fit a document; `fault` says why, beginning with the place."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)
        self.fault = fault


def put_over(plain: Plain, patch: Patch) -> tuple[Plain, str]:
    """Give a document with one patch, and the path of what it changed; `plain` stays as it is.

    Raises:
        PatchError: the document has nothing it could change, or this version not such a field.
    """
    put = PUT_OVER.get(patch.noun)
    if put is None:
        raise PatchError(f"{patch.name}: {unknown(patch.noun, list(PUT_OVER))}")
    return put(plain, patch)


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> Plain:
    """Give `old` with the members of `new` in it, mapping by mapping."""
    result = dict(old)
    for name, value in new.items():
        before = result.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping) and name not in WHOLE:
            result[name] = merged(before, value)
        else:
            result[name] = value
    return result


def all_routes(plain: Plain) -> list[str]:
    """List the routes of a document: of its models, and of those that presets bring along."""
    return [f"{item.get('provider')}/{item.get('model')}" for item in _models(plain)]


def _over_model(plain: Plain, patch: Patch) -> tuple[Plain, str]:
    _only(patch, MODEL_FIELDS)
    models = _models(plain)
    place = _place_of(
        patch, [f"{item.get('provider')}/{item.get('model')}" for item in models], "models"
    )
    declared = _mappings(plain, "models")
    if place < len(
        declared
    ):  # else a preset brings it along: all of those are declared from now on
        models = declared
    return _with_item(plain, "models", models, place, patch.fields)


def _over_key(plain: Plain, patch: Patch) -> tuple[Plain, str]:
    _only(patch, KEY_FIELDS)
    keys = _mappings(plain, "keys")
    place = _place_of(patch, [str(item.get("id")) for item in keys], "keys")
    return _with_item(plain, "keys", keys, place, patch.fields)


def _over_key_secret(plain: Plain, patch: Patch) -> tuple[Plain, str]:
    """It is no part of the document: see `settings/key_secrets.py`. Its key may be elsewhere."""
    _only(patch, KEY_SECRET_FIELDS)
    return plain, patch.name


def _over_combo(plain: Plain, patch: Patch) -> tuple[Plain, str]:
    _only(patch, COMBO_FIELDS)
    combos = _combos(plain)
    place = _place_of(patch, [str(item.get("id")) for item in combos], "combos")
    return _with_item(plain, "combos", combos, place, _ordered(plain, combos[place], patch.fields))


def _new_profile(plain: Plain, patch: Patch) -> tuple[Plain, str]:
    _only(patch, COMBO_FIELDS)
    combos = _combos(plain)
    if patch.id in [item.get("id") for item in combos]:
        raise PatchError(f"{patch.name}: the file has a combo of this name")
    new = {"id": patch.id, "profile": True}
    fields = _ordered(plain, new, patch.fields)
    return _with_item(plain, "combos", [*combos, new], len(combos), fields)


def _over_setting(plain: Plain, patch: Patch) -> tuple[Plain, str]:
    section_name = patch.id.partition(".")[0]
    if section_name not in SETTING_FIELDS:
        raise PatchError(f"{patch.name}: {unknown(patch.id, list(SETTING_FIELDS))}")
    _only(patch, SETTING_FIELDS[section_name])
    if section_name == DEFAULT_COMBO:
        return {**plain, DEFAULT_COMBO: patch.fields.get("combo")}, DEFAULT_COMBO
    section = plain.get(section_name)
    before = section if isinstance(section, dict) else {}
    return {**plain, section_name: merged(before, patch.fields)}, section_name


def _over_client(plain: Plain, patch: Patch) -> tuple[Plain, str]:
    _only(patch, CLIENT_FIELDS)
    clients = _mappings(plain, "clients")
    place = _place_of(patch, [str(item.get("id")) for item in clients], "clients")
    return _with_item(plain, "clients", clients, place, patch.fields)


def _over_client_key(plain: Plain, patch: Patch) -> tuple[Plain, str]:
    """A patch of its own, and never one that does not fit: a revoked key must not come back."""
    _only(patch, CLIENT_KEY_FIELDS)
    clients = _mappings(plain, "clients")
    ids = [str(item.get("id")) for item in clients]
    if patch.id not in ids:
        return plain, patch.name
    return _with_item(plain, "clients", clients, ids.index(patch.id), patch.fields)


def _made_client(plain: Plain, patch: Patch) -> tuple[Plain, str]:
    _only(patch, (*CLIENT_FIELDS, *CLIENT_KEY_FIELDS))
    clients = _mappings(plain, "clients")
    if patch.id in [item.get("id") for item in clients]:
        raise PatchError(f"{patch.name}: the file has a client of this name")
    new = {"id": patch.id}
    return _with_item(plain, "clients", [*clients, new], len(clients), patch.fields)


def _over_epoch(plain: Plain, patch: Patch) -> tuple[Plain, str]:
    """Of a combo that is gone the epoch is kept: one of its name must not find what it left."""
    _only(patch, ("epoch",))
    combos = _combos(plain)
    ids = [item.get("id") for item in combos]
    if patch.id not in ids:
        return plain, patch.name
    return _with_item(plain, "combos", combos, ids.index(patch.id), patch.fields)


PUT_OVER: Final[Mapping[str, Callable[[Plain, Patch], tuple[Plain, str]]]] = MappingProxyType(
    {
        "models": _over_model,
        "keys": _over_key,
        KEY_SECRETS: _over_key_secret,
        "profiles": _new_profile,
        "combos": _over_combo,
        "settings": _over_setting,
        "clients": _over_client,
        CLIENT_KEYS: _over_client_key,
        MADE_CLIENTS: _made_client,
        EPOCHS: _over_epoch,
    }
)
"""In the order in which they are put over a document: later ones name what earlier ones make."""


def _only(patch: Patch, fields: Sequence[str]) -> None:
    for name in patch.fields:
        if name not in fields:
            message = unknown(name, list(fields)).replace("unknown", "unknown field", 1)
            place = patch.name if patch.id.endswith(f".{name}") else at_name(patch.name, name)
            raise PatchError(f"{place}: {message}")


def _place_of(patch: Patch, names: list[str], noun: str) -> int:
    if patch.id not in names:
        raise PatchError(f"{noun}: {unknown(patch.id, names)}")
    return names.index(patch.id)


def _with_item(
    plain: Plain, section: str, items: list[Plain], place: int, fields: Plain
) -> tuple[Plain, str]:
    changed = [*items[:place], merged(items[place], fields), *items[place + 1 :]]
    return {**plain, section: changed}, at_index(section, place)


def _ordered(plain: Plain, combo: Plain, fields: Plain) -> Plain:
    """Spell an `order` out: its routes first as far as there are such, then all other members."""
    order = fields.get("order")
    rest = {name: value for name, value in fields.items() if name != "order"}
    base = rest.get("members", combo.get("members", "all"))
    if order is None or not isinstance(base, str | list):
        return rest  # wrong members are found with all else that is wrong
    routes = dict.fromkeys(all_routes(plain))
    members = [*routes] if isinstance(base, str) else _mentioned(base)
    flags = {_route_in(one, routes): _flag_in(one) for one in members}
    if isinstance(order, list) and len(order) > MAX_ENTRIES:
        raise PatchError(f"combos.{combo['id']}.order: must have at most {MAX_ENTRIES} entries")
    entries = _mentioned(order) if isinstance(order, list) else []
    if not isinstance(order, list) or len(entries) < len(order):
        raise PatchError(f"combos.{combo['id']}.order: expected a list of routes and their flags")
    chain = {
        route: _flag_in(one)
        for one in entries
        if (route := _route_in(one, routes)) in flags or route.rpartition(ENDPOINT)[0] in flags
    }
    rest["members"] = [
        {"route": route, "enabled": enabled}
        for route, enabled in {
            **chain,
            **{route: enabled for route, enabled in flags.items() if route not in chain},
        }.items()
    ]
    return rest


def _mentioned(members: list[Any]) -> list[Any]:
    """Those that name a route at all."""
    return [
        one
        for one in members
        if isinstance(one.get("route") if isinstance(one, dict) else one, str)
    ]


def _route_in(member: Any, routes: Mapping[str, None]) -> str:
    name: str = member["route"] if isinstance(member, dict) else member
    return route_of(name, routes) or name


def _flag_in(member: Any) -> Any:
    return member.get("enabled", True) if isinstance(member, dict) else True


def _mappings(plain: Plain, section: str) -> list[Plain]:
    items = plain.get(section)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _combos(plain: Plain) -> list[Plain]:
    """The combos of a document; without any there is `auto`."""
    return _mappings(plain, "combos") if "combos" in plain else [{"id": "auto"}]


def _models(plain: Plain) -> list[Plain]:
    """The models of a document, after them those of presets whose provider declares none."""
    declared = _mappings(plain, "models")
    with_models = {item.get("provider") for item in declared}
    found = [*declared]
    providers = plain.get("providers")
    for name, provider in providers.items() if isinstance(providers, dict) else ():
        preset = provider.get("preset") if isinstance(provider, dict) else None
        if name not in with_models and isinstance(preset, str):
            found.extend(_brought(plain, name, preset))
    return found


def _brought(plain: Plain, name: str, preset: str) -> list[Plain]:
    """The models a preset brings along, out of the operator's catalogue where there is one."""
    if isinstance(plain.get("catalog"), list):
        rows = _mappings(plain, "catalog")
        return [{**row, "provider": name} for row in rows if row.get("provider") == preset]
    bundled = default_models(name, preset)
    return [_without_nothing(msgspec.to_builtins(model)) for model in bundled]


def _without_nothing(value: Plain) -> Plain:
    return {
        name: _without_nothing(item) if isinstance(item, dict) else item
        for name, item in value.items()
        if item is not None
    }
