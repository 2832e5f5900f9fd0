"""How long a test itself had to wait for its turn, for claims about times on a busy machine."""

import asyncio
import contextlib
import time
from typing import Final, Self

TICK_S: Final = 0.01
LATE_S: Final = 0.02


class Starvation:
    """Watches this process while `async with` lasts: what it waited, the workers wait, too."""

    def __init__(self) -> None:
        self._lost_s = 0.0

    async def __aenter__(self) -> Self:
        self._began_s = time.monotonic()
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._watching

    def share(self) -> float:
        """The part of the time so far in which it wanted to run and could not, 0 to 1."""
        return self._lost_s / (time.monotonic() - self._began_s)

    async def _watch(self) -> None:
        while True:
            before_s = time.monotonic()
            await asyncio.sleep(TICK_S)
            late_s = time.monotonic() - before_s - TICK_S
            self._lost_s += late_s if late_s > LATE_S else 0.0
