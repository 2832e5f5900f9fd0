"""How long a worker may be silent, by a clock that the test turns."""

import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_gw.supervisor.listening import WorkerSocket
from cluster_gw.supervisor.merging import MetricSum
from cluster_gw.supervisor.worker import START_S, Worker, WorkerCommand
from tests.supervisor.conftest import wait_for

MUTE = (sys.executable, "-c", "import time; time.sleep(60)")


@pytest.fixture
def mute(short_folder: Path) -> Iterator[Worker]:
    """A worker whose process lives and never says a word."""
    listening = WorkerSocket("127.0.0.1", 0, socket.socket())
    command = WorkerCommand(words=MUTE, config_fd=0, environ={})
    worker = Worker(0, listening, str(short_folder / "w0"), command)
    worker.child.start(0.0)
    yield worker
    worker.close_listening()
    if worker.child.pid is not None:
        worker.child.retire()
        worker.child.signal(signal.SIGKILL)
        wait_for(worker.child.has_ended)


async def looked_after(worker: Worker, since_s: float, until_s: float) -> int | None:
    """Look and tend once a second; give the pid that was killed, if one was."""
    now_s = since_s
    while now_s <= until_s:
        await worker.look()
        killed = worker.kill_if_silent(now_s)
        if killed is not None:
            return killed
        now_s += 1.0
    return None


async def test_a_worker_that_never_comes_up_is_killed_after_a_minute_and_started_anew(
    mute: Worker,
) -> None:
    pid = mute.child.pid

    assert await looked_after(mute, 0.0, START_S - 1) is None
    assert await looked_after(mute, START_S, START_S) == pid
    ended = wait_for(lambda: mute.tend(START_S, MetricSum()))
    mute.tend(START_S + ended.restart_in_s, MetricSum())

    assert (ended.pid, ended.code) == (pid, -9)
    assert mute.child.pid not in {None, pid}
    assert mute.kill_if_silent(START_S + 1) is None  # a life of its own


async def test_time_in_which_the_parent_stood_still_is_no_silence(mute: Worker) -> None:
    assert await looked_after(mute, 0.0, START_S - 1) is None

    assert await looked_after(mute, 1000.0, 999.0 + START_S) is None
    assert await looked_after(mute, 1000.0 + START_S, 1000.0 + START_S) == mute.child.pid


async def test_a_process_that_resists_is_killed_once_each_time(mute: Worker) -> None:
    assert await looked_after(mute, 0.0, START_S) is not None

    assert mute.kill_if_silent(START_S + 0.05) is None
