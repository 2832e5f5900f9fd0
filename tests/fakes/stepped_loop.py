"""A running event loop whose time the test moves: timers fire when it says so, tasks are real."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Any


class SteppedLoop:
    """Stands beside the running loop; give it to what takes a loop for its clock and timers."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._order = itertools.count()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._loop = asyncio.get_running_loop()

    def time(self) -> float:
        """The test's time, in seconds."""
        return self._now_s

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> Any:
        """Call `callback` when the test has come to `when`."""
        timer = asyncio.TimerHandle(when, callback, args, self._loop)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def create_task(self, coroutine: Any) -> "asyncio.Task[Any]":
        """A task of the running loop."""
        return self._loop.create_task(coroutine)

    async def pass_s(self, seconds: float) -> None:
        """Let time pass; what falls due runs in order, and the tasks it started go as far as they
        can."""
        until_s = self._now_s + seconds
        while self._timers and self._timers[0][0] <= until_s:
            self._now_s, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled():
                timer._run()
            for _ in range(3):
                await asyncio.sleep(0)
        self._now_s = until_s
