"""The task that runs the requests of one connection, one after the other.

A task for each request costs a thirtieth of it: its name, its place among all tasks and its end.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

from cluster_gw.server.cycle import Cycle

App = Callable[..., Coroutine[Any, Any, None]]


class Runner:
    """Starts requests; one that is not over when the next begins keeps its task to itself.

    Args:
        loop: the running loop.
        app: what answers (ASGI).
        tasks: those with a request under way, for who waits for them or ends them.
    """

    __slots__ = ("_app", "_idle", "_is_closed", "_loop", "_tasks")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, app: App, tasks: set[asyncio.Task[None]]
    ) -> None:
        self._loop = loop
        self._app = app
        self._tasks = tasks
        self._idle: asyncio.Future[Cycle | None] | None = None
        self._is_closed = False

    def start(self, cycle: Cycle) -> None:
        """Run a request from the next turn of the loop on."""
        idle, self._idle = self._idle, None
        if idle is None or idle.done():
            self._tasks.add(self._loop.create_task(self._run(cycle)))
        else:
            idle.set_result(cycle)

    def close(self) -> None:
        """The connection is gone: what is under way goes on, and no other request comes."""
        self._is_closed = True
        idle, self._idle = self._idle, None
        if idle is not None and not idle.done():
            idle.set_result(None)

    async def _run(self, cycle: Cycle | None) -> None:
        tasks, app = self._tasks, self._app
        task = cast("asyncio.Task[None]", asyncio.current_task())
        while cycle is not None:
            tasks.add(task)
            fault: BaseException | None = None
            try:
                await app(cycle.scope, cycle.receive, cycle.send)
            except BaseException as caught:  # noqa: BLE001 - the outermost layer
                fault = caught
            if fault is not None or not cycle.response_complete:
                await cycle.ended(fault)
            cycle.forget()
            cycle = fault = None
            tasks.discard(task)
            # One that was told to end must not hand that on to the next request.
            if self._is_closed or self._idle is not None or task.cancelling():
                return
            self._idle = self._loop.create_future()
            cycle = await self._idle
