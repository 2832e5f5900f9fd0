"""Whoever reads the log may go first, as `serve | tee` at Ctrl-C, or stall.

Nothing may stay behind, and nobody may wait for it.
"""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cluster.pools import one_model
from tests.fakes.group import SimulatedProvider, free_port, get_json
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

STOP_S = 15.0
BODY = {"model": "auto", "messages": [{"role": "user", "content": "hi"}]}
REQUESTS = 400  # more lines than a pipe holds, 64 KB


class Served:
    """A group whose log goes into a pipe."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, admin_port: int) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}/v1/chat/completions"
        self.admin_port = admin_port


@pytest.fixture
def served(provider: SimulatedProvider) -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="gwp") as folder:
        port, data_port = free_port(), free_port()
        path = Path(folder) / "gw.json"
        server = {"port": data_port, "admin_port": port, "workers": 2}
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
            workers = children(process.pid)
            try:
                yield Served(process, data_port, port)
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
    served: Served, number: signal.Signals
) -> None:
    process, pids = served.process, children(served.process.pid)
    assert process.stdout is not None
    process.stdout.close()

    process.send_signal(number)
    code = process.wait(STOP_S)

    until(lambda: not any(is_alive(pid) for pid in pids), 6)
    assert code == (-number if number == signal.SIGKILL else 0)


def test_a_reader_that_stalls_stops_no_request_and_no_end(served: Served) -> None:
    with httpx.Client(trust_env=False, timeout=STOP_S) as client:
        statuses = [client.post(served.url, json=BODY).status_code for _ in range(REQUESTS)]

    served.process.send_signal(signal.SIGTERM)

    assert set(statuses) <= {200, 429}  # each of them was logged
    assert served.process.wait(STOP_S) == 0


def test_lines_for_a_reader_who_left_are_counted_for_the_whole_group(served: Served) -> None:
    assert served.process.stdout is not None
    served.process.stdout.close()
    name = "gw_log_lines_dropped_total "

    def dropped() -> float:
        page = httpx.get(f"http://127.0.0.1:{served.admin_port}/metrics", trust_env=False).text
        return next(float(row.split()[1]) for row in page.splitlines() if row.startswith(name))

    before = dropped()
    with httpx.Client(trust_env=False, timeout=STOP_S) as client:
        assert client.post(served.url, json=BODY).status_code == 200

    until(lambda: dropped() > before, 6)
