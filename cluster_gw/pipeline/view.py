"""The snapshot as this worker sees it: mapped to its own routes, keys and clock."""

from collections.abc import Mapping
from typing import Final

import msgspec

from cluster_gw.core.limits.usage import UNUSED
from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.signals import Bar, Signals, TargetSignals, bar_of_route
from cluster_gw.core.routing.snapshot import NO_SNAPSHOT, Barred, Snapshot, bar_of
from cluster_gw.core.routing.statistics import NO_STATISTICS
from cluster_gw.core.routing.strategies.base import StrategyInputs
from cluster_gw.pipeline.targets import Targets
from cluster_gw.store.plan import Plan, Plans
from cluster_gw.store.snapshots import Reading
from cluster_gw.units import MS_PER_S, KeyId, RouteId


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What this worker ranks by.

    Attributes:
        snapshot: the version in force.
        inputs: it in terms of this worker's configuration, for strategies.
        at_s: when its building began, by this worker's monotonic clock.
    """

    snapshot: Snapshot = NO_SNAPSHOT
    inputs: StrategyInputs = StrategyInputs()
    at_s: float = 0.0

    def age_ms(self, now_s: float) -> int | None:
        """How old the snapshot is; None without one."""
        if not self.snapshot.version:
            return None
        return max(0, round((now_s - self.at_s) * MS_PER_S))


NO_VIEW: Final = View()


def build_view(reading: Reading, targets: Targets, plans: Plans, read_at_s: float) -> View:
    """Map a snapshot to a configuration.

    Args:
        reading: the snapshot and the server's clock.
        targets: of the configuration in force.
        plans: knows the names of their records.
        read_at_s: this worker's monotonic clock at `reading.server_ms`.
    """
    snapshot = reading.snapshot
    of_routes: dict[RouteId, Mapping[KeyId, TargetSignals]] = {}
    barred: dict[RouteId, Bar] = {}
    for route, by_key in targets.items():
        of_keys = {
            key: _signals(snapshot, plans.of(target.limits), reading, read_at_s)
            for key, target in by_key.items()
        }
        of_routes[route] = of_keys
        bar = bar_of_route(tuple(of_keys.values()))
        if bar is not None:
            barred[route] = bar
    signals = Signals(version=snapshot.version, targets=of_routes, barred=barred)
    return View(
        snapshot=snapshot,
        inputs=StrategyInputs(signals=signals),
        at_s=read_at_s - (reading.server_ms - snapshot.at_ms) / MS_PER_S,
    )


def _signals(snapshot: Snapshot, plan: Plan, reading: Reading, read_at_s: float) -> TargetSignals:
    barred = _barred(snapshot, plan, reading.server_ms)
    bar = None
    if barred is not None:
        left_s = (barred.until_ms - reading.server_ms) / MS_PER_S
        bar = Bar(gate=barred.gate, until_s=read_at_s + left_s)
    return TargetSignals(
        statistics=snapshot.statistics.get(plan.statistics, NO_STATISTICS),
        use=tuple(snapshot.windows.get(window, UNUSED) for window in plan.windows),
        bar=bar,
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
