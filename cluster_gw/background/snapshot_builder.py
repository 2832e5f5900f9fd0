"""Builds the snapshot that all workers rank by; one worker of the cluster does it at a time."""

from collections.abc import Awaitable, Callable
from typing import Final

from cluster_gw.background.elected import Elected
from cluster_gw.core.routing.snapshot import Snapshot
from cluster_gw.errors import StoreLostError
from cluster_gw.store.leadership import Leadership
from cluster_gw.store.membership import Membership
from cluster_gw.store.snapshots import Snapshots
from cluster_gw.store.survey import Findings

BUILD_S: Final = 5.0
LOOK_S: Final = 0.25


class SnapshotBuilder(Elected):
    """Runs for the role, and while it has it, builds a snapshot every five seconds.

    Args:
        membership: tells how many workers live.
        leadership: of the role `snap`.
        snapshots: where they are published.
        survey: reads all that there is to know of the configuration in force.
        worker_id: names this worker.
        monotonic_s: clock between two snapshots.

    Attributes:
        built: snapshots published since the start.
        refused: snapshots that came too late: another worker had the role by then.
    """

    def __init__(
        self,
        membership: Membership,
        leadership: Leadership,
        snapshots: Snapshots,
        *,
        survey: Callable[[], Awaitable[Findings]],
        worker_id: str,
        monotonic_s: Callable[[], float],
    ) -> None:
        super().__init__(leadership, lambda: bool(membership.alive))
        self.built = 0
        self.refused = 0
        self._membership = membership
        self._snapshots = snapshots
        self._survey = survey
        self._worker_id = worker_id
        self._monotonic_s = monotonic_s
        self._due_s = 0.0

    async def look(self) -> None:
        """Build if this worker has the role and it is time: at once when it has just got it."""
        if self._leadership.term is None:
            self._due_s = 0.0
            return
        now_s = self._monotonic_s()
        if now_s < self._due_s:
            return
        self._due_s = now_s + BUILD_S
        try:
            await self._build()
        except StoreLostError:
            self._due_s = 0.0  # the next look tries again

    async def _build(self) -> None:
        term, now_ms = self._leadership.term, self._membership.server_clock_ms()
        if term is None or now_ms is None:
            return
        found = await self._survey()
        snapshot = Snapshot(
            at_ms=found.at_ms or int(now_ms),
            builder=self._worker_id,
            workers=self._membership.alive,
            windows=found.windows,
            health=found.health,
            statistics=found.statistics,
            months=found.months,
            models=found.models,
            providers=found.providers,
            speed_ranks=found.speed_ranks,
        )
        if await self._snapshots.publish(snapshot, term) is None:
            self.refused += 1
        else:
            self.built += 1
