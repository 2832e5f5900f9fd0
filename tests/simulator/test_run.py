import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import httpx
import pytest

PROGRAM = """
import os, sys
from cluster_gw.simulator.config import SimulatorConfig
from cluster_gw.simulator.server import run_simulator

parent = int(sys.argv[1])
config = SimulatorConfig(any_key=True)
run_simulator(
    config,
    expected_parent=parent or None,
    on_ready=lambda running: print(running.port, flush=True),
)
"""

Launch = Callable[[int], "tuple[subprocess.Popen[str], int]"]


@pytest.fixture
def launch() -> Iterator[Launch]:
    """Starts a simulator process that watches the given parent (0: nobody)."""
    started = []

    def launch_one(parent: int) -> tuple[subprocess.Popen[str], int]:
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(parent)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        started.append(process)
        assert process.stdout is not None
        return process, int(process.stdout.readline())

    yield launch_one
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_process_serves_and_ends_with_zero_on_a_signal(
    launch: Launch, number: signal.Signals
) -> None:
    process, port = launch(os.getpid())
    assert httpx.get(f"http://127.0.0.1:{port}/livez").json() == {"status": "ok"}

    process.send_signal(number)

    assert process.wait(timeout=5) == 0


def test_process_ends_when_its_parent_is_another(launch: Launch) -> None:
    process, _ = launch(1)

    assert process.wait(timeout=5) == 0


def test_reset_works_on_the_loop_of_the_process(launch: Launch) -> None:
    process, port = launch(0)
    request = {"model": "fault-cut-10", "messages": [{"role": "user", "content": "q"}]}

    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)) as caught:
        httpx.post(
            f"http://127.0.0.1:{port}/v1/chat/completions",
            json=request,
            headers={"authorization": "Bearer k"},
        )

    assert "reset" in str(caught.value).lower()
    process.terminate()
    assert process.wait(timeout=5) == 0
