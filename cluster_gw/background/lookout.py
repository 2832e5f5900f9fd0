"""Looking out of turn: at once when something was heard, and once more if it is said meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable


class Lookout:
    """Runs a look in the background, one at a time.

    Args:
        look: what is done; it must not raise.
    """

    def __init__(self, look: Callable[[], Awaitable[None]]) -> None:
        self._look = look
        self._is_due = False
        self._running: asyncio.Task[None] | None = None

    def look_soon(self) -> None:
        """Look at once; once more if this is said while it looks."""
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
            await self._look()
