"""Small things done beside requests: so many at once, waited for or ended together."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Errands:
    """Runs coroutines that nobody waits for; each one deals with its own faults.

    Args:
        most: how many run at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._running: set[asyncio.Task[None]] = set()

    @property
    def is_full(self) -> bool:
        """Whether no more may begin now."""
        return len(self._running) >= self._most

    def begin(self, errand: Coroutine[Any, Any, None]) -> None:
        """Run one; ask `is_full` before."""
        task = asyncio.get_running_loop().create_task(errand)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def settle(self) -> None:
        """Wait until all are done, those too that begin meanwhile."""
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)

    async def stop(self) -> None:
        """End those that run."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
