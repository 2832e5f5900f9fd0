"""Writes down how fast routes were, every ten minutes at most; one worker of the cluster does."""

from collections.abc import Callable, Mapping
from typing import Final

from cluster_gw.errors import StoreLostError
from cluster_gw.store.leadership import Leadership
from cluster_gw.store.speed_ranks import SpeedRankRecord
from cluster_gw.units import MS_PER_S, RouteId

WRITE_S: Final = 600.0
LOOK_S: Final = 15.0

Changed = Callable[[Mapping[RouteId, int]], Mapping[RouteId, int | None]]
"""Tells what has to be written over what stands there."""


class SpeedRanker:
    """Works while this worker has the role.

    Args:
        leadership: of the role `snap`; others run for it.
        record: of the ranks.
        changed: knows what was measured.
        server_clock_ms: the server's clock, ms since the epoch; None when it was not heard yet.
    """

    def __init__(
        self,
        leadership: Leadership,
        record: SpeedRankRecord,
        *,
        changed: Changed,
        server_clock_ms: Callable[[], float | None],
    ) -> None:
        self._leadership = leadership
        self._record = record
        self._changed = changed
        self._server_clock_ms = server_clock_ms

    async def look(self) -> None:
        """Write if there is something new, and nobody wrote within the last ten minutes."""
        now_ms = self._server_clock_ms()
        if self._leadership.term is None or now_ms is None:
            return
        try:
            written = await self._record.read()
            # A time that is yet to come is that of a clock that was set back.
            if written.at_ms <= now_ms < written.at_ms + WRITE_S * MS_PER_S:
                return
            changes, term = self._changed(written.ranks), self._leadership.term
            if changes and term is not None:
                await self._record.write(changes, term)
        except StoreLostError:
            return  # the next look tries again
