"""The snapshot as this worker sees it: mapped to its own routes, keys and clock."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from cluster_gw.core.limits.usage import UNUSED
from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.headroom import left_of
from cluster_gw.core.routing.signals import (
    NO_SIGNALS,
    Bar,
    RouteSignals,
    Signals,
    TargetSignals,
    bar_of_route,
    route_signals,
)
from cluster_gw.core.routing.snapshot import NO_SNAPSHOT, Barred, Snapshot, bar_of, owes_trial
from cluster_gw.core.routing.statistics import NO_STATISTICS
from cluster_gw.pipeline.runtime import Runtime
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.plan import Plan, Plans
from cluster_gw.store.snapshots import Reading
from cluster_gw.units import MS_PER_S, KeyId, RouteId


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What this worker ranks by.

    Attributes:
        snapshot: the version in force.
        signals: it in terms of this worker's configuration, for strategies.
    """

    snapshot: Snapshot = NO_SNAPSHOT
    signals: Signals = NO_SIGNALS

    def age_ms(self, now_s: float) -> int | None:
        """How old the snapshot is; None without one."""
        return self.signals.age_ms(now_s)


NO_VIEW: Final = View()


def is_always_routed(_target: Target) -> bool:
    """Where nothing is known of keys."""
    return True


def build_view(
    reading: Reading,
    runtime: Runtime,
    plans: Plans,
    read_at_s: float,
    *,
    is_degraded: bool = False,
    is_routed: Callable[[Target], bool] = is_always_routed,
) -> View:
    """Map a snapshot to a configuration.

    Args:
        reading: the snapshot and the server's clock.
        runtime: the configuration in force.
        plans: knows the names of its records.
        read_at_s: this worker's monotonic clock at `reading.server_ms`.
        is_degraded: few providers are usable.
        is_routed: whether nothing is known against a target's key and model themselves.
    """
    snapshot, policy = reading.snapshot, runtime.policy
    of_targets: dict[RouteId, Mapping[KeyId, TargetSignals]] = {}
    of_routes: dict[RouteId, RouteSignals] = {}
    barred: dict[RouteId, Bar] = {}
    for route, by_key in runtime.targets.items():
        of_keys: dict[KeyId, TargetSignals] = {}
        points = 0.0
        for key, target in by_key.items():
            plan = plans.of(target.limits)
            seen = _signals(snapshot, plan, reading, read_at_s)
            if not is_routed(target):
                seen = msgspec.structs.replace(seen, is_routed=False)
            of_keys[key] = seen
            standing = snapshot.models.get(plan.model)
            if standing is not None:
                points = standing.points_at(reading.server_ms, policy.penalty)
        of_targets[route] = of_keys
        of_routes[route] = route_signals(
            runtime.catalog.routes[route],
            of_keys,
            policy.headroom,
            penalty_points=points,
            most_points=policy.penalty.max,
            first_byte_share=policy.first_byte_share,
        )
        bar = bar_of_route(tuple(of_keys.values()))
        if bar is not None:
            barred[route] = bar
    signals = Signals(
        version=snapshot.version,
        targets=of_targets,
        routes=of_routes,
        speed_ranks=snapshot.speed_ranks,
        barred=barred,
        is_degraded=is_degraded,
        zero_ms=reading.server_ms - read_at_s * MS_PER_S,
        at_s=read_at_s - (reading.server_ms - snapshot.at_ms) / MS_PER_S,
        slates={},
    )
    return View(snapshot=snapshot, signals=signals)


def _signals(snapshot: Snapshot, plan: Plan, reading: Reading, read_at_s: float) -> TargetSignals:
    barred = _barred(snapshot, plan, reading.server_ms)
    bar = None
    if barred is not None:
        left_s = (barred.until_ms - reading.server_ms) / MS_PER_S
        bar = Bar(gate=barred.gate, until_s=read_at_s + left_s)
    use = tuple(snapshot.windows.get(window, UNUSED) for window in plan.windows)
    return TargetSignals(
        statistics=snapshot.statistics.get(plan.statistics, NO_STATISTICS),
        use=use,
        left=left_of(use, plan.limits),
        month_tokens=snapshot.months.get(plan.statistics, 0),
        bar=bar,
        half_open=bar is None
        and any(
            owes_trial(snapshot.health[record])
            for record in plan.health
            if record in snapshot.health
        ),
    )


def _barred(snapshot: Snapshot, plan: Plan, server_ms: int) -> Barred | None:
    """Tell what bars a target for longest: its health, its key's, its model's, its provider's."""
    found = [
        barred
        for record in plan.health
        if record in snapshot.health
        and (barred := bar_of(snapshot.health[record], server_ms)) is not None
    ]
    standing = snapshot.models.get(plan.model)
    if standing is not None and standing.benched_until_ms > server_ms:
        found.append(Barred(gate=Gate.BENCH, until_ms=standing.benched_until_ms))
    outage = snapshot.providers.get(plan.outage)
    if outage is not None and outage.wait_ms and outage.seen_ms + outage.wait_ms > server_ms:
        found.append(Barred(gate=Gate.PROVIDER_OPEN, until_ms=outage.seen_ms + outage.wait_ms))
    return max(found, key=lambda barred: barred.until_ms, default=None)
