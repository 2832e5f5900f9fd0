"""Keeps the snapshot this worker ranks by the present one."""

import asyncio
from collections.abc import Callable
from typing import Final

from cluster_gw.core.routing.snapshot import NO_SNAPSHOT
from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.snapshots import Reading, Snapshots

LOOK_S: Final = 1.0  # what is told of a new one may get lost


class SnapshotFollower:
    """Reads the snapshot when there is another.

    Args:
        snapshots: where it is.
        on_read: called with each new one, before anything ranks by it.
        on_unreadable: called with the reason when it cannot be read; the last one stays.
    """

    def __init__(
        self,
        snapshots: Snapshots,
        *,
        on_read: Callable[[Reading], None],
        on_unreadable: Callable[[str], None],
    ) -> None:
        self._snapshots = snapshots
        self._on_read = on_read
        self._on_unreadable = on_unreadable
        self._known = NO_SNAPSHOT
        self._is_told = False
        self._extra: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Read it if it is another one than before; while Redis is away the last one stays."""
        try:
            reading = await self._snapshots.read(self._known)
        except StoreLostError:
            return
        except ScriptContractError as fault:
            if not self._is_told:
                self._on_unreadable(str(fault))
            self._is_told = True
            return
        self._is_told = False
        # None at all is what a server that lost its data says: the last one is better than that.
        if reading.snapshot.version not in {0, self._known.version}:
            self._known = reading.snapshot
            self._on_read(reading)

    def look_soon(self) -> None:
        """Look out of turn, in the background: there is a new one, or a message was missed."""
        if self._extra is None or self._extra.done():
            self._extra = asyncio.get_running_loop().create_task(self.look())

    async def stop(self) -> None:
        """End what `look_soon` began."""
        if self._extra is not None:
            self._extra.cancel()
            await asyncio.gather(self._extra, return_exceptions=True)
