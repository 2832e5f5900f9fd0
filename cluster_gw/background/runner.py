"""Keeps the periodic jobs of a worker running; a job that fails is logged and runs again."""

import asyncio
from collections.abc import Awaitable, Callable

from cluster_gw.telemetry import events
from cluster_gw.telemetry.log import Log

Job = Callable[[], Awaitable[None]]


class Runner:
    """Owns one task per job; must be started on the loop the jobs belong to."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._tasks: list[asyncio.Task[None]] = []

    def every(self, period_s: float, name: str, job: Job) -> None:
        """Run `job` every `period_s` seconds until `stop`."""
        self._tasks.append(asyncio.create_task(self._repeat(period_s, name, job), name=name))

    async def stop(self) -> None:
        """Cancel all jobs and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _repeat(self, period_s: float, name: str, job: Job) -> None:
        while True:
            await asyncio.sleep(period_s)
            try:
                await job()
            except Exception as exc:  # noqa: BLE001 - one failing job must not end the others
                self._log.event(events.TASK_CRASHED, task=name, exception=type(exc).__name__)
