"""`/api/fallback`: the chain of a combo, its order and its flags."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.core.routing.catalog import Combo, Member
from cluster_gw.core.routing.sorting import SortPreset, sort_members
from cluster_gw.core.routing.speed_ranks import speed_rank_of
from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid, nothing_called, read_json, told
from cluster_gw.server.admin.combos import noun_of
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.editor import Change
from cluster_gw.server.admin.read_only import as_sent, is_same
from cluster_gw.server.admin.writing import seen_version, snake_case
from cluster_gw.settings.sections import MAX_ENTRIES
from cluster_gw.units import ComboId, RouteId

MEASURED: Final = frozenset({"speed_rank", "speed_rank_measured"})


def fallback_routes(desk: Desk) -> list[Route]:
    """The chain under `/api/fallback`."""
    fallback = Fallback(desk)
    return [
        Route("/api/fallback", fallback.show, methods=["GET"]),
        Route("/api/fallback", fallback.change, methods=["PUT"]),
        Route("/api/fallback/sort/{preset}", fallback.sort, methods=["POST"]),
    ]


class Fallback:
    """Shows, orders and sorts a chain; `?combo=` names it, else it is the default combo's."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, request: Request) -> Response:
        """Show the chain."""
        return self._told(named_combo(self._desk, request).id)

    async def change(self, request: Request) -> Response:
        """Put routes in order and set their flags; those that are not named come after them.

        Whoever sends back what was shown changes nothing.
        """
        body = await read_json(request)
        sent = body.get("combo") if isinstance(body, Mapping) else None
        entries = await asyncio.to_thread(read_entries, body)

        def changes() -> list[Change]:
            combo = named_combo(self._desk, request, sent)
            if is_same(lasting(entries), lasting(as_sent(self._shown_all(combo)))):
                return []
            return [self._order(combo, ordered(entries, combo))]

        await self._desk.editor.write(changes, seen_version(request))
        return self._told(named_combo(self._desk, request, sent).id)

    async def sort(self, request: Request) -> Response:
        """Sort the chain by one quality of its models, the best first."""
        name = request.path_params["preset"]
        if name not in {preset.value for preset in SortPreset}:
            presets = ", ".join(preset.value for preset in SortPreset)
            raise ClientFault(invalid(f"there is no order '{name[:64]}'; {presets}", "preset"))
        current = self._desk.deps.current

        def changes() -> list[Change]:
            combo = named_combo(self._desk, request)
            members = sort_members(
                SortPreset(name),
                combo.members,
                current.serving.runtime.catalog.routes,
                current.view.signals.speed_ranks,
            )
            return [self._order(combo, {one.route: one.enabled for one in members})]

        await self._desk.editor.write(changes, seen_version(request))
        return self._told(named_combo(self._desk, request).id)

    def _order(self, combo: Combo, order: Mapping[RouteId, bool]) -> Change:
        entries = [{"route": route, "enabled": enabled} for route, enabled in order.items()]
        noun = noun_of(self._desk, combo.id)
        return Change(noun=noun, id=combo.id, fields={"order": entries})

    def _told(self, name: str) -> Response:
        combo = self._desk.deps.current.serving.runtime.catalog.combos[ComboId(name)]
        content = {"combo": combo.id, "items": self._shown_all(combo)}
        return told(content, self._desk.config_version)

    def _shown_all(self, combo: Combo) -> list[dict[str, Any]]:
        return [self._shown(member, place) for place, member in enumerate(combo.members, 1)]

    def _shown(self, member: Member, priority: int) -> dict[str, Any]:
        current = self._desk.deps.current
        route = current.serving.runtime.catalog.routes[member.route]
        written = current.view.signals.speed_ranks
        return {
            "route": route.id,
            "provider": route.provider,
            "model": route.model,
            "name": route.name,
            "priority": priority,
            "enabled": member.enabled,
            "model_enabled": route.enabled,
            "speed_rank": speed_rank_of(route, written),
            "speed_rank_measured": written.get(route.id),
            "keys": [key.id for key in route.keys],
        }


def ordered(entries: Sequence[Mapping[str, Any]], combo: Combo) -> dict[RouteId, bool]:
    """Give all members of a combo and whether they are enabled: those of the entries first.

    Raises:
        ClientFault: an entry is none of them, or says something that cannot be.
    """
    members = {member.route: member.enabled for member in combo.members}
    order: dict[RouteId, bool] = {}
    for place, entry in enumerate(entries):
        route = route_in(entry, place, members)
        if route in order:
            raise ClientFault(invalid(f"'{route}' stands twice", f"items[{place}]"))
        enabled = entry.get("enabled", members[route])
        if not isinstance(enabled, bool):
            fault = invalid("enabled has to be true or false", f"items[{place}].enabled")
            raise ClientFault(fault)
        order[route] = enabled
    return order | {route: flag for route, flag in members.items() if route not in order}


def lasting(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Give entries without what changes by itself between being shown and being sent back."""
    return [
        {name: value for name, value in entry.items() if name not in MEASURED} for entry in entries
    ]


def route_in(entry: Mapping[str, Any], place: int, members: Mapping[RouteId, bool]) -> RouteId:
    """Tell which member an entry means.

    Raises:
        ClientFault: none of them.
    """
    provider = entry.get("provider", entry.get("platform"))
    model = entry.get("model", entry.get("model_id"))
    name = entry.get("route", f"{provider}/{model}")
    if not isinstance(name, str) or name not in members:
        raise ClientFault(
            invalid(f"'{str(name)[:128]}' is no member of the combo", f"items[{place}].route")
        )
    return RouteId(name)


def named_combo(desk: Desk, request: Request, sent: Any = None) -> Combo:
    """Give the combo that `?combo=` names, else that of the body, else the default combo.

    Args:
        desk: of this worker.
        request: asks for it.
        sent: `combo` of its body; None where that names none.

    Raises:
        ClientFault: there is none of this name, or both name one and not the same.
    """
    catalog = desk.deps.current.serving.runtime.catalog
    asked = request.query_params.get("combo")
    if sent is not None:
        is_there = isinstance(sent, str) and sent in catalog.combos
        if not is_there or asked not in {None, "", sent}:
            message = "combo names no combo, or another one than the query"
            raise ClientFault(invalid(message, "combo"))
    name = asked or sent or catalog.default_combo
    combo = catalog.combos.get(ComboId(name))
    if combo is None:
        raise nothing_called("combo", name)
    return combo


def read_entries(body: Any) -> list[dict[str, Any]]:
    """Read the entries of a chain: a list, or an object with `items`; `priority` orders them.

    Raises:
        ClientFault: it is neither, or only some entries have a priority.
    """
    items = body.get("items") if isinstance(body, Mapping) else body
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise ClientFault(invalid("send a list of entries, or an object with items", "items"))
    if len(items) > MAX_ENTRIES:
        raise ClientFault(invalid(f"must have at most {MAX_ENTRIES} entries", "items"))
    entries = []
    for place, item in enumerate(items):
        if not isinstance(item, Mapping | str):
            raise ClientFault(invalid("an entry names a route", f"items[{place}]"))
        entries.append({"route": item} if isinstance(item, str) else snake_case(item))
    ranks = [entry["priority"] for entry in entries if "priority" in entry]
    if not ranks:
        return entries
    if len(ranks) < len(entries) or not all(type(rank) in {int, float} for rank in ranks):
        raise ClientFault(invalid("give a priority to every entry, or to none", "items"))
    return sorted(entries, key=lambda entry: entry["priority"])
