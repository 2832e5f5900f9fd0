"""Whoever reads the log may go first, as `serve | tee` at Ctrl-C; nothing may stay behind."""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.pools import one_model
from tests.fakes.group import SimulatedProvider, free_port, get_json
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

STOP_S = 15.0


@pytest.fixture
def serve(provider: SimulatedProvider) -> Iterator[subprocess.Popen[bytes]]:
    """A group whose log went into a pipe that nobody reads any more."""
    with tempfile.TemporaryDirectory(prefix="gwp") as folder:
        port = free_port()
        path = Path(folder) / "gw.json"
        server = {"port": free_port(), "admin_port": port, "workers": 2}
        document = {
            **one_model(provider.base_url),
            "auth": {"mode": "none"},
            "server": server,
            "redis": {"data_dir": f"{folder}/redis"},
        }
        path.write_text(json.dumps(document))
        command = [sys.executable, "-m", "cluster_gw", "serve", "--config", str(path)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        ) as process:
            assert process.stdout is not None
            until(lambda: process.poll() is not None or is_ready(port), 20)
            assert process.poll() is None, process.stdout.read().decode()
            process.stdout.close()
            workers = children(process.pid)
            try:
                yield process
            finally:
                process.kill()
                for pid in filter(is_alive, workers):
                    subprocess.run(["kill", "-9", str(pid)], check=False)


def is_ready(port: int) -> bool:
    try:
        return bool(get_json(f"http://127.0.0.1:{port}/readyz")["status"] == "ready")
    except OSError:
        return False


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_process_stays_behind_when_nobody_reads_the_log(
    serve: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    pids = children(serve.pid)

    serve.send_signal(number)
    code = serve.wait(STOP_S)

    until(lambda: not any(is_alive(pid) for pid in pids), 6)
    assert code == (-number if number == signal.SIGKILL else 0)
