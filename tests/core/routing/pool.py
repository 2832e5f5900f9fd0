"""Routes of which something is known, ranked without Redis."""

from collections.abc import Sequence

import msgspec

from cluster_gw.core.outcome.gate import GatePolicy
from cluster_gw.core.routing.axes import speed_score
from cluster_gw.core.routing.catalog import Combo, Member, Resolved, Route
from cluster_gw.core.routing.context import RouteContext, build_context
from cluster_gw.core.routing.posterior import Chance
from cluster_gw.core.routing.presets import PeakHours, Task, Tuning, build_scoring
from cluster_gw.core.routing.prior import NO_PRIOR, Prior
from cluster_gw.core.routing.ranking import Order, Ranked
from cluster_gw.core.routing.resolution import Catalog
from cluster_gw.core.routing.signals import Bar, RouteSignals, Signals
from cluster_gw.core.routing.statistics import NO_STATISTICS, Statistics
from cluster_gw.core.routing.sticky_policy import NOT_STICKY, StickyPolicy
from cluster_gw.core.routing.strategies import STRATEGIES
from cluster_gw.core.routing.strategies.base import StrategyInputs
from cluster_gw.units import ClientId, ComboId, RouteId
from tests.pipeline.catalogs import make_request, make_route

NOON_S = 12 * 3600.0


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """One route and what a snapshot says of it."""

    tier: int = 0
    weight: float = 1.0
    intelligence: float = 0.0
    statistics: Statistics = NO_STATISTICS
    headroom: float = 1.0
    points: float = 0.0
    prior: Prior = NO_PRIOR
    tools: bool = True
    bar: Bar | None = None
    half_open: bool = False
    quality: float | None = None
    window: int | None = None

    def route(self, number: int) -> Route:
        return msgspec.structs.replace(
            make_route(f"m{number}", tools=self.tools, context_window=self.window),
            weight=self.weight,
            intelligence=self.intelligence,
            prior=self.prior,
            quality_hint=self.quality,
        )

    def signals(self) -> RouteSignals:
        return RouteSignals(
            statistics=self.statistics,
            speed=speed_score(self.statistics),
            remaining=self.headroom,
            headroom=self.headroom,
            penalty_points=self.points,
            rate_limit=1.0 - self.points / 10 * 0.6,
            half_open=self.half_open,
        )


class Pool:
    """A combo over some routes.

    Args:
        known: its members, in declared order.
        strategy: of the combo.
        family: of the combo.
        explore: share of requests that try a route of which little is known.
        weights: the operator's own.
        is_degraded: few providers are usable.
        tuning: what else the operator set of scoring; in place of `explore`.
        sticky: how it keeps a run or a session.
    """

    def __init__(
        self,
        known: Sequence[Known],
        strategy: str = "balanced",
        family: str = "bandit",
        *,
        explore: float = 0.0,
        weights: dict[str, float] | None = None,
        is_degraded: bool = False,
        tuning: Tuning | None = None,
        sticky: StickyPolicy = NOT_STICKY,
    ) -> None:
        routes = [one.route(number) for number, one in enumerate(known)]
        scoring = build_scoring(
            family,
            strategy,
            weights or {},
            tuning
            or Tuning(
                peak_hours=PeakHours(enabled=True), task_share=0.3, explore_unmeasured=explore
            ),
        )
        combo = Combo(
            id=ComboId("auto"),
            family=family,
            strategy=strategy,
            members=tuple(Member(route=route.id) for route in routes),
            gate=GatePolicy(),
            scoring=scoring,
            sticky=sticky,
        )
        catalog = Catalog(
            version=1,
            routes={route.id: route for route in routes},
            combos={combo.id: combo},
            default_combo=combo.id,
        )
        found = catalog.resolve("auto")
        assert isinstance(found, Resolved)
        # A combo has one tier; several come of groups, and of several models in one request.
        self.resolved = msgspec.structs.replace(found, tiers=tuple(one.tier for one in known))
        self.strategy = STRATEGIES[family, strategy]
        self.candidates = self.resolved.candidates
        self.signals = Signals(
            version=9,
            routes={r.id: one.signals() for r, one in zip(routes, known, strict=True)},
            barred={
                r.id: one.bar for r, one in zip(routes, known, strict=True) if one.bar is not None
            },
            is_degraded=is_degraded,
            slates={},
        )

    def context(
        self,
        task: Task = Task.AUTO,
        *,
        tools: bool = False,
        text: str = "",
        characters: int = 0,
    ) -> RouteContext:
        request = make_request(
            wants_tools=tools, first_user_text=text, input_characters=(characters,)
        )
        return build_context(request, self.resolved, ClientId("c"), task=task)

    def inputs(
        self,
        chance: Chance | None = None,
        *,
        cursor: int = 0,
        now_s: float = NOON_S,
        last_good: RouteId | None = None,
        pinned: RouteId | None = None,
    ) -> StrategyInputs:
        return StrategyInputs(
            signals=self.signals,
            chance=chance,
            cursor=cursor,
            now_s=now_s,
            last_good=last_good,
            pinned=pinned,
        )

    def rank(
        self,
        chance: Chance | None = None,
        task: Task = Task.AUTO,
        *,
        cursor: int = 0,
        now_s: float = NOON_S,
        prompt: str = "",
    ) -> Order:
        inputs = self.inputs(chance, cursor=cursor, now_s=now_s)
        return self.strategy.rank(self.candidates, self.context(task, text=prompt), inputs)

    def told(
        self, chance: Chance | None = None, *, cursor: int = 0, prompt: str = ""
    ) -> tuple[Ranked, ...]:
        return self.rank(chance, cursor=cursor, prompt=prompt).tell()


def places(order: Order) -> list[int]:
    return [candidate.position for candidate in order.candidates]
