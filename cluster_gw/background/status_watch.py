"""Reads what all workers know of keys and the pool: every few seconds, and when it has changed."""

import asyncio
import contextlib
from typing import Final

from cluster_gw.errors import StoreLostError
from cluster_gw.store.status_board import StatusBoard

LOOK_S: Final = 5.0


class StatusWatch:
    """Keeps the board of this worker up to date."""

    def __init__(self, board: StatusBoard) -> None:
        self._board = board
        self._is_due = False
        self._running: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Read once; while Redis is away what was known is believed on."""
        with contextlib.suppress(StoreLostError):
            await self._board.refresh()

    def look_soon(self) -> None:
        """Read at once, in the background; once more if this is said while reading."""
        self._is_due = True
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._catch_up())

    async def stop(self) -> None:
        """End what `look_soon` began."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _catch_up(self) -> None:
        while self._is_due:
            self._is_due = False
            await self.look()
