"""`/api/fallback/routing`: how a combo ranks its chain, and how its routes stand now."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.core.routing.catalog import Combo
from cluster_gw.core.routing.catalog import Route as CatalogRoute
from cluster_gw.core.routing.headroom import month_remaining
from cluster_gw.core.routing.presets import FACTORS, Task
from cluster_gw.core.routing.signals import Signals
from cluster_gw.errors import ClientFault, GatewayError, StoreLostError
from cluster_gw.server.admin.answers import invalid, told
from cluster_gw.server.admin.combos import noun_of
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.editor import Change
from cluster_gw.server.admin.explain import scene_of
from cluster_gw.server.admin.fallback import named_combo
from cluster_gw.server.admin.read_only import ReadOnly, changed_only
from cluster_gw.server.admin.scores import scores_of
from cluster_gw.server.admin.writing import read_fields, seen_version
from cluster_gw.server.explaining import Asked, explain_request
from cluster_gw.settings.strategies import STRATEGIES
from cluster_gw.units import MS_PER_S
from cluster_gw.wire.json_codec import write

EXPLORED_SHARE: Final = 0.1  # what the first generation's switch stood for
QUESTION: Final = "How would a short request be ranked?"
OF_COMBO: Final = ("strategy", "weights")
READ_ONLY: Final = ReadOnly(
    fixed=frozenset({"combo", "family", "strategies"}),
    measured=frozenset({"peak_adjusted", "scores", "warnings"}),
)


def _explored(value: Any) -> float | None:
    if value is not None and not isinstance(value, bool):
        raise ClientFault(invalid("explore_enabled has to be true or false", "explore_enabled"))
    return None if value is None else EXPLORED_SHARE if value else 0.0


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    fault = invalid("cooldown_ceiling_ms has to be a number of ms", "cooldown_ceiling_ms")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ClientFault(fault)
    try:
        return value / MS_PER_S
    except OverflowError:  # a whole number above every float
        raise ClientFault(fault) from None


def _same(value: Any) -> Any:
    return value


OF_ROUTING: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Any], Any]]]] = MappingProxyType(
    {
        "key_selection": (("key_selection",), _same),
        "key_selection_strategy": (("key_selection",), _same),
        "explore_unmeasured": (("explore_unmeasured",), _same),
        "explore_enabled": (("explore_unmeasured",), _explored),
        "task_weight_share": (("task_weight_share",), _same),
        "cooldown_ceiling_ms": (("cooldown", "ceiling_s"), _seconds),
        "peak_hours": (("peak_hours",), _same),
        "peak_hours_adjust": (("peak_hours", "enabled"), _same),
        "peak_start_hour": (("peak_hours", "start_hour"), _same),
        "peak_end_hour": (("peak_hours", "end_hour"), _same),
        "peak_timezone": (("peak_hours", "timezone"), _same),
    }
)
"""Where a field stands in the section `routing`, and what is made of its value."""


def routing_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/fallback/routing`."""
    routing = Routing(desk)
    return [
        Route("/api/fallback/routing", routing.show, methods=["GET"]),
        Route("/api/fallback/routing", routing.change, methods=["PUT"]),
        Route("/api/fallback/token-usage", routing.month, methods=["GET"]),
    ]


class Routing:
    """Shows and changes a combo's strategy together with what tunes all of them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, request: Request) -> Response:
        """Show both, and the score of each route by what is known now, without chance."""
        return await self._told(named_combo(self._desk, request))

    async def change(self, request: Request) -> Response:
        """Change both in one step; null goes back to what the file says."""
        sent = await read_fields(request)

        def changes() -> list[Change]:
            return self._changes(named_combo(self._desk, request, sent.get("combo")), sent)

        warnings = await self._desk.editor.write(changes, seen_version(request))
        return await self._told(named_combo(self._desk, request, sent.get("combo")), warnings)

    def _changes(self, combo: Combo, sent: Mapping[str, Any]) -> list[Change]:
        fields = changed_only(sent, self._shown(combo), READ_ONLY)
        if "custom_weights" in fields:
            saved, shown = fields.pop("custom_weights"), self._weights(combo)
            # Both are shown, and what is in force is not what was saved: an hour may have shifted
            # it. Who sends back what was shown changes nothing.
            if "weights" not in fields or fields["weights"] == shown:
                fields.pop("weights", None)
                if saved != self._saved(combo):
                    fields["weights"] = saved
        if fields.get("family", combo.family) != combo.family:
            raise ClientFault(invalid("family cannot be changed here", "family"))
        own, common = split(fields)
        changes = []
        if own:
            noun = noun_of(self._desk, combo.id)
            changes.append(Change(noun=noun, id=combo.id, fields=own))
        if common:
            changes.append(Change(noun="settings", id="routing", fields=common))
        return changes

    async def month(self, request: Request) -> Response:
        """Tell what the keys of each route used of their tokens of this month (UTC)."""
        combo, view = named_combo(self._desk, request), self._desk.deps.current.view
        routes = self._desk.deps.current.serving.runtime.catalog.routes
        items = [
            {**of_month(routes[member.route], view.signals), "enabled": member.enabled}
            for member in combo.members
        ]
        content = {
            "items": items,
            "used_tokens": sum(one["used_tokens"] for one in items),
            "budget_tokens": sum(one["budget_tokens"] or 0 for one in items),
        }
        return told(content, self._desk.config_version)

    async def _told(self, combo: Combo, warnings: Sequence[str] = ()) -> Response:
        document = {**self._shown(combo), "scores": await self._scores(combo)}
        return told(document, self._desk.config_version, warnings=warnings)

    def _shown(self, combo: Combo) -> dict[str, Any]:
        """All but the scores, which take a look at Redis."""
        settings = self._desk.editor.shown()["routing"]
        ceiling_s = settings["cooldown"]["ceiling_s"]
        return {
            "combo": combo.id,
            "family": combo.family,
            "strategy": combo.strategy,
            "strategies": list(STRATEGIES[combo.family]),
            "weights": self._weights(combo),
            "custom_weights": self._saved(combo),
            "explore_enabled": settings["explore_unmeasured"] > 0,
            "explore_unmeasured": settings["explore_unmeasured"],
            "key_selection": settings["key_selection"],
            "peak_hours": settings["peak_hours"],
            "peak_adjusted": self._is_peak(combo) and combo.scoring.peak is not None,
            "cooldown_ceiling_ms": None if ceiling_s is None else round(ceiling_s * MS_PER_S),
            "task_weight_share": settings["task_weight_share"],
        }

    def _is_peak(self, combo: Combo) -> bool:
        """Whether the hours of more load are on, by the clock of Redis as in ranking."""
        signals = self._desk.deps.current.view.signals
        now_s = self._desk.deps.clock.monotonic_s()
        return combo.scoring.peak_hours.holds(signals.server_ms(now_s))

    def _weights(self, combo: Combo) -> dict[str, float] | None:
        """What is in force; None where nothing is weighed."""
        weights = combo.scoring.weights(Task.AUTO, is_peak=self._is_peak(combo))
        return dict(zip(FACTORS[combo.family], weights, strict=True)) if weights else None

    def _saved(self, combo: Combo) -> Any:
        """What the operator set."""
        declared = next(one for one in self._desk.editor.shown()["combos"] if one["id"] == combo.id)
        return declared["weights"] or declared["strategy_options"]["weights"]

    async def _scores(self, combo: Combo) -> list[dict[str, Any]] | None:
        """How the routes of a combo stand; None while that cannot be told."""
        body = {"model": combo.id, "messages": [{"role": "user", "content": QUESTION}]}
        asked = Asked(request=msgspec.Raw(write(body)))
        current = self._desk.deps.current
        try:
            explained = await explain_request(asked, scene_of(self._desk))
        except StoreLostError:
            return None
        except GatewayError:  # nothing of it can serve
            explained = None
        routes = current.serving.runtime.catalog.routes
        return scores_of(combo, routes, current.view.signals, explained)


def split(fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide a change into what is the combo's and what tunes all of them.

    Raises:
        ClientFault: a field is unknown, or of a type that nothing can be made of.
    """
    own = {name: fields[name] for name in OF_COMBO if name in fields}
    common: dict[str, Any] = {}
    for name, value in fields.items():
        is_said_better = name == "explore_enabled" and "explore_unmeasured" in fields
        if name in own or name in READ_ONLY.fixed | READ_ONLY.measured or is_said_better:
            continue
        if name not in OF_ROUTING:
            raise ClientFault(invalid(f"unknown field '{name[:80]}'", name[:80]))
        path, read = OF_ROUTING[name]
        section, *inner = path
        if not inner:
            common[section] = read(value)
            continue
        table = common.setdefault(section, {})
        if not isinstance(table, dict):
            raise ClientFault(invalid(f"{section} has to be an object", section))
        table[inner[0]] = read(value)
    return own, common


def of_month(route: CatalogRoute, signals: Signals) -> dict[str, Any]:
    """What the keys of a route used of their tokens of the month, pooled."""
    known = signals.targets.get(route.id, {})
    used = sum(known[key.id].month_tokens for key in route.keys if key.id in known)
    each, keys = route.monthly_tokens, len(route.keys)
    return {
        "route": route.id,
        "provider": route.provider,
        "model": route.model,
        "name": route.name,
        "keys": keys,
        "used_tokens": used,
        "budget_tokens": None if each is None else each * max(1, keys),
        "remaining": month_remaining(used, each, keys),
    }
