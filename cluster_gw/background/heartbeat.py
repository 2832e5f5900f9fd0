"""Says every second that this worker lives."""

import asyncio
from collections.abc import Callable

from cluster_gw.errors import StoreLostError
from cluster_gw.store.membership import Membership


class Heartbeat:
    """Beats, and misses a beat while Redis is away.

    Attributes:
        is_silent: whether it never beats.
    """

    def __init__(self, membership: Membership) -> None:
        self.is_silent = False
        self._membership = membership
        self._when_lost: list[Callable[[StoreLostError], None]] = []
        self._extra: asyncio.Task[None] | None = None

    def when_lost(self, tell: Callable[[StoreLostError], None]) -> None:
        """Have `tell` called with the fault of a missed beat: an idle worker learns by it."""
        self._when_lost.append(tell)

    async def beat(self) -> None:
        """Beat once."""
        try:
            await self._membership.beat()
        except StoreLostError as fault:
            for tell in self._when_lost:
                tell(fault)

    def beat_soon(self) -> None:
        """Beat out of turn, in the background: Redis was away and is back."""
        if self.is_silent:
            return
        self._extra = asyncio.get_running_loop().create_task(self.beat())

    async def stop(self) -> None:
        """End what `beat_soon` began."""
        if self._extra is not None:
            self._extra.cancel()
            await asyncio.gather(self._extra, return_exceptions=True)
