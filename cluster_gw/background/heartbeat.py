"""Says every second that this worker lives."""

import asyncio
import contextlib

from cluster_gw.errors import StoreLostError
from cluster_gw.store.membership import Membership


class Heartbeat:
    """Beats, and misses a beat while Redis is away."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._extra: asyncio.Task[None] | None = None

    async def beat(self) -> None:
        """Beat once."""
        with contextlib.suppress(StoreLostError):
            await self._membership.beat()

    def beat_soon(self) -> None:
        """Beat out of turn, in the background: Redis was away and is back."""
        self._extra = asyncio.get_running_loop().create_task(self.beat())

    async def stop(self) -> None:
        """End what `beat_soon` began."""
        if self._extra is not None:
            self._extra.cancel()
            await asyncio.gather(self._extra, return_exceptions=True)
