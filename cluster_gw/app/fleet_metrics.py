"""What the snapshot says of keys and routes, as metrics: worked out when somebody asks for them."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from cluster_gw.app.base import Base
from cluster_gw.app.coordination import Coordination
from cluster_gw.core.limits.usage import WindowUse
from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.headroom import AXES
from cluster_gw.core.routing.signals import TargetSignals
from cluster_gw.pipeline.targets import Target
from cluster_gw.server.serving import Current
from cluster_gw.store.plan import Plan, Plans
from cluster_gw.store.status_board import StatusBoard
from cluster_gw.telemetry import catalog
from cluster_gw.telemetry.labels import hashed
from cluster_gw.units import MS_PER_S

LIMITS: Final = ("rpm", "rpd", "tpm", "tpd", "concurrency")
COUNTED: Final = frozenset({"rpm", "rpd", "concurrency"})
"""Never exceeded; of tokens more may be used than was estimated, and that is known afterwards."""
OK: Final = "ok"
HALF_OPEN: Final = "half_open"

Numbers = dict[tuple[str, ...], float]


class Seen(NamedTuple):
    """One target, what its key is called in labels, and what is known of it."""

    target: Target
    label: str
    plan: Plan
    signals: TargetSignals


class FleetMetrics:
    """Tells the same in every worker, but for the few seconds in which a snapshot travels.

    Args:
        base: of the worker.
        current: the configuration in force, and the view of the snapshot.
        board: which keys and models are not used at all.
        plans: know the windows of targets.
        coordination: knows the clock of Redis.
    """

    def __init__(
        self,
        base: Base,
        current: Current,
        *,
        board: StatusBoard,
        plans: Plans,
        coordination: Coordination,
    ) -> None:
        self._base, self._current, self._board = base, current, board
        self._plans, self._coordination = plans, coordination
        base.registry.on_read(self._read)

    def _read(self) -> None:
        registry, redis = self._base.registry, self._base.redis
        seen = list(self._seen())
        registry.replace(catalog.KEY_ROUTES, self._states(seen))
        registry.replace(catalog.KEY_USE, _used(seen))
        registry.replace(catalog.WINDOWS_OVER, _windows_over(seen))
        registry.replace(catalog.LEASES, _leases(seen))
        self._read_routes()
        for script, calls in redis.times.calls.items():
            registry.put(catalog.REDIS_SCRIPT_CALLS, script, value=calls)
            registry.put(catalog.REDIS_SCRIPT_SECONDS, script, value=redis.times.seconds[script])
        registry.put(
            catalog.DRAINING, value=int(self._current.is_draining or self._current.is_drained)
        )
        server_ms = self._coordination.server_clock_ms()
        if server_ms is not None:
            offset_ms = abs(self._base.clock.wall_ms() - server_ms)
            registry.put(catalog.CLOCK_OFFSET, value=offset_ms / MS_PER_S)

    def _seen(self) -> Iterator[Seen]:
        signals, labels = self._current.view.signals.targets, dict[str, str]()
        for route, by_key in self._current.serving.runtime.targets.items():
            known = signals.get(route, {})
            for key, target in by_key.items():
                if key not in known:  # a new configuration may be ahead of its view
                    continue
                label = labels.get(key) or labels.setdefault(key, hashed(key))
                yield Seen(target, label, self._plans.of(target.limits), known[key])

    def _states(self, seen: Sequence[Seen]) -> Numbers:
        numbers: Numbers = {}
        now_s = self._base.clock.monotonic_s()
        for target, label, _, signals in seen:
            labels = (target.route.provider, label, self._state(target, signals, now_s))
            numbers[labels] = numbers.get(labels, 0) + 1
        return numbers

    def _state(self, target: Target, signals: TargetSignals, now_s: float) -> str:
        if not signals.is_routed:
            route = target.route
            barring = self._board.barring(route.provider, target.key.id, route.subject)
            return str(Gate.KEY_INVALID if barring is None else barring.gate)
        if signals.bar is not None and now_s < signals.bar.until_s:
            return str(signals.bar.gate)
        return HALF_OPEN if signals.half_open else OK

    def _read_routes(self) -> None:
        routes = self._current.serving.runtime.catalog.routes
        success: Numbers = {}
        samples: Numbers = {}
        penalties: Numbers = {}
        times: Numbers = {}
        for route, known in self._current.view.signals.routes.items():
            if route not in routes:
                continue
            labels = (routes[route].provider, routes[route].subject)
            told = known.statistics
            success[labels] = told.alpha / (told.alpha + told.beta)
            samples[labels] = told.successes + told.failures
            penalties[labels] = known.penalty_points
            if told.tokens_per_s:
                times[labels] = 1.0 / told.tokens_per_s
        replace = self._base.registry.replace
        replace(catalog.ROUTE_SUCCESS, success)
        replace(catalog.ROUTE_SAMPLES, samples)
        replace(catalog.ROUTE_PENALTY, penalties)
        replace(catalog.ROUTE_TOKEN_SECONDS, times)


def _bounds(seen: Seen) -> Iterator[tuple[str, str, int, int]]:
    """Give window, limit, use and bound of everything that a target is limited by."""
    limits = seen.plan.limits
    for place, (window, use) in enumerate(zip(seen.plan.windows, seen.signals.use, strict=False)):
        bounds = limits[place * AXES : (place + 1) * AXES]
        for name, used, bound in zip(LIMITS, _five(use), bounds, strict=True):
            if bound >= 0:
                yield window, name, used, bound


def _five(use: WindowUse) -> tuple[int, ...]:
    minute, day = use.requests_minute, use.requests_day
    return (minute, day, use.tokens_minute, use.tokens_day, use.in_flight)


def _used(seen: Sequence[Seen]) -> Numbers:
    numbers: Numbers = {}
    for one in seen:
        for _, name, used, bound in _bounds(one):
            labels = (one.target.route.provider, one.label, name)
            share = used / bound if bound else 1.0
            numbers[labels] = max(share, numbers.get(labels, 0.0))
    return numbers


def _windows_over(seen: Sequence[Seen]) -> Numbers:
    over: dict[str, set[str]] = {name: set() for name in COUNTED}
    for one in seen:
        for window, name, used, bound in _bounds(one):
            if name in COUNTED and used > bound:
                over[name].add(window)
    return {(name,): len(windows) for name, windows in over.items()}


def _leases(seen: Sequence[Seen]) -> Numbers:
    windows = {
        one.plan.windows[0]: (one.target.route.provider, one.signals.use[0].in_flight)
        for one in seen
        if one.signals.use
    }
    numbers: Numbers = {}
    for provider, in_flight in windows.values():
        numbers[provider,] = numbers.get((provider,), 0) + in_flight
    return numbers
