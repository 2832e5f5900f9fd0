"""Starts whole groups with stub workers, and ends what a test left behind."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.fakes.waiting import until

RUNNER = Path(__file__).with_name("run_group.py")
ROOT = Path(__file__).parents[2]
EXTERNAL = {"redis": {"url": "redis://127.0.0.1:1/0"}}


def wait_for(condition: Callable[[], Any], within_s: float = 10.0) -> Any:
    """Give the first truthy result of `condition`; fail when there is none in time."""
    deadline_s = time.monotonic() + within_s
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline_s, "did not happen in time"
        time.sleep(0.02)  # another process acts, there is no clock to turn


def lives(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def children(pid: int) -> list[int]:
    """The child processes of a process."""
    try:
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def command_of(pid: int) -> str:
    """The command line of a process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def free_port() -> int:
    """A port nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class RunningGroup:
    """A group of the tests."""

    def __init__(
        self, folder: Path, document: dict[str, Any], environ: dict[str, str], *companions: str
    ) -> None:
        self.folder = folder
        self.config = folder / "gw.yaml"
        self.data_dir = folder / "data"
        server = document.setdefault("server", {})
        server.setdefault("port", free_port())
        server.setdefault("admin_port", free_port())
        self.document = document
        self.write(document)
        self.runtime = folder / "run"
        self.runtime.mkdir(exist_ok=True)
        self.log_path = folder / f"log-{server['port']}-{time.monotonic_ns()}"
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(RUNNER), str(self.config), str(self.data_dir), *companions],
                env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.runtime), **environ},
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self.data = httpx.Client(base_url=f"http://127.0.0.1:{server['port']}", trust_env=False)
        self.ops = httpx.Client(
            base_url=f"http://127.0.0.1:{server['admin_port']}", trust_env=False
        )

    def write(self, document: dict[str, Any]) -> None:
        """Replace the configuration at once."""
        draft = self.config.with_suffix(".new")
        draft.write_bytes(msgspec.json.encode(document))
        draft.replace(self.config)

    def wait_until_ready(self) -> "RunningGroup":
        """Wait for the parent's own word, and for what it logs of it a moment later."""
        assert self.process.stdout is not None
        lines = iter(self.process.stdout.readline, b"")
        assert b"ready\n" in lines, self.log()
        until(lambda: self.has_logged("group.ready"))
        return self

    def log(self) -> str:
        """What the group has logged."""
        return self.log_path.read_text()

    def has_logged(self, event: str) -> bool:
        """Whether an event is in the log."""
        return f'"event":"{event}"' in self.log()

    def status(self) -> str:
        """What the operations port says of the group."""
        return str(self.ops.get("/readyz", timeout=3).json()["status"])

    def version(self) -> int:
        """Which version of the file every worker serves with."""
        return int(self.ops.get("/readyz", timeout=3).json()["file_version"])

    def workers(self) -> list[int]:
        """The worker processes."""
        return [c for c in children(self.process.pid) if "stub_worker" in command_of(c)]

    def redis(self) -> int:
        """The embedded server's process."""
        found = [c for c in children(self.process.pid) if "valkey" in command_of(c)]
        return found[0] if found else 0

    def ask(self) -> dict[str, Any]:
        """Send a request on a connection of its own and give the worker's answer."""
        with httpx.Client(trust_env=False) as client:
            url = f"http://127.0.0.1:{self.document['server']['port']}/count"
            answer: dict[str, Any] = client.get(url).json()
            return answer

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End the parent and give its exit code."""
        self.process.send_signal(number)
        return self.process.wait(10)

    def clean(self) -> None:
        """Kill what still runs of it."""
        for pid in [*children(self.process.pid), self.process.pid]:
            if lives(pid):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(10)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.data.close()
        self.ops.close()


@contextlib.contextmanager
def ended_at_last(process: "subprocess.Popen[Any]") -> Iterator[None]:
    """Kill what still runs of a process, whatever becomes of the test."""
    try:
        yield
    finally:
        for pid in [*children(process.pid), process.pid]:
            if lives(pid):
                os.kill(pid, signal.SIGKILL)
        process.wait(10)


StartGroup = Callable[..., RunningGroup]


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for the name of a unix socket."""
    with tempfile.TemporaryDirectory(prefix="gwt-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def start_group(short_folder: Path) -> Iterator[StartGroup]:
    """Starts groups that share one folder."""
    started: list[RunningGroup] = []

    def start(
        document: dict[str, Any] | None = None, *companions: str, **environ: str
    ) -> RunningGroup:
        folder = short_folder / str(len(started))
        folder.mkdir(exist_ok=True)
        group = RunningGroup(folder, document or {}, environ, *companions)
        started.append(group)
        return group

    yield start
    for group in started:
        group.clean()


@pytest.fixture(scope="module")
def shared_group() -> Iterator[RunningGroup]:
    """One group of two workers for tests that leave it as they found it."""
    with tempfile.TemporaryDirectory(prefix="gwt-", dir="/tmp") as folder:
        group = RunningGroup(Path(folder), {"server": {"workers": 2}, **EXTERNAL}, {})
        group.wait_until_ready()
        yield group
        group.clean()


@pytest.fixture
def whole_group(shared_group: RunningGroup) -> RunningGroup:
    """The shared group, every worker of it ready."""
    wait_for(lambda: shared_group.status() == "ready")
    return shared_group
