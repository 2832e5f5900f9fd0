import asyncio
import io
import os

from cluster_gw.background.parent_watch import ParentWatch
from cluster_gw.background.runner import Runner
from cluster_gw.telemetry.log import Log


async def test_a_job_that_fails_is_logged_and_runs_again() -> None:
    stream = io.BytesIO()
    runner = Runner(Log(stream))
    twice = asyncio.Event()
    runs = []

    async def job() -> None:
        runs.append(1)
        if len(runs) == 1:
            raise RuntimeError("secret text")
        twice.set()

    runner.every(0.001, "demo", job)
    await asyncio.wait_for(twice.wait(), 5)
    await runner.stop()

    assert b"task.crashed" in stream.getvalue()
    assert b"RuntimeError" in stream.getvalue()
    assert b"secret text" not in stream.getvalue()


async def test_a_lost_parent_is_reported_once() -> None:
    calls: list[int] = []
    watch = ParentWatch(os.getppid() + 1, lambda: calls.append(1))

    await watch.look()
    await watch.look()

    assert calls == [1]


async def test_the_expected_parent_is_no_loss() -> None:
    calls: list[int] = []

    await ParentWatch(os.getppid(), lambda: calls.append(1)).look()

    assert calls == []
