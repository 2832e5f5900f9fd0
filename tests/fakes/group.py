"""The gateway as its users run it: `cluster-gw serve` with worker processes and its own Valkey."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

READY_S = 20.0
WORKER_READY_S = 2.0  # a start is work for a core, and workers share them
STOP_S = 20.0


def free_port() -> int:
    """A loopback port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def get_json(url: str, timeout_s: float = 2.0) -> Any:
    """The JSON at a loopback URL, whatever its status."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:  # noqa: S310
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return json.loads(error.read())


class Place(NamedTuple):
    """Where a command runs: what is put before it, and its address as seen from here."""

    before: tuple[str, ...]
    address: str


HERE = Place((), "127.0.0.1")


class Running:
    """A command of ours in its own process group; ended by SIGTERM, exit code kept."""

    def __init__(
        self,
        *words: str,
        environ: Mapping[str, str] | None = None,
        checkout: Path | None = None,
        place: Place = HERE,
    ) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="gwc")
        self.log_path = Path(self.folder.name) / "log"
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [*place.before, sys.executable, "-m", "cluster_gw", *words],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environ or {}), **_path_of(checkout)},
                cwd=checkout,
                start_new_session=True,
            )

    def log(self) -> str:
        """Everything written so far."""
        return self.log_path.read_text(errors="replace")

    def wait_for(self, url: str, within_s: float = READY_S) -> None:
        """Wait until a URL answers 200."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log()
            try:
                with urllib.request.urlopen(url, timeout=1):  # noqa: S310
                    return
            except OSError:
                time.sleep(0.02)
        raise AssertionError(f"{url} is not ready:\n{self.log()}")

    def stop(self) -> int:
        """SIGTERM and wait; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_S)

    def close(self) -> None:
        """End what still runs, the hard way, and remove the folder."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(STOP_S)
        self.folder.cleanup()


class SimulatedProvider(Running):
    """`cluster-gw simulate-provider` with a configuration."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.port = free_port()
        self._file = tempfile.NamedTemporaryFile("w", suffix=".json")  # noqa: SIM115
        json.dump({**config, "port": self.port}, self._file)
        self._file.flush()
        super().__init__("simulate-provider", "--config", self._file.name)
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self.wait_for(f"http://127.0.0.1:{self.port}/livez")

    def stats(self) -> Any:
        """What the provider counted."""
        return get_json(f"http://127.0.0.1:{self.port}/stats")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
        self._file.close()


class GatewayGroup(Running):
    """`cluster-gw serve` with a configuration; ports and data folder are chosen here.

    Args:
        config: all but `server` and the address in `redis`.
        workers: how many.
        redis_url: their Redis.
        environ: beside this process's own.
        has_redis: whether that can be reached; else the group is never quite ready.
        checkout: the folder of another version to run.
        place: another one than here; needs clients with keys.
        ports: of the data and the operations plane; free ones by default.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        workers: int,
        redis_url: str = "embedded:",
        environ: Mapping[str, str] | None = None,
        has_redis: bool = True,
        checkout: Path | None = None,
        place: Place = HERE,
        ports: tuple[int, int] | None = None,
    ) -> None:
        self._workers, self._has_redis = workers, has_redis
        self.port, self.admin_port = ports or (free_port(), free_port())
        self._data = tempfile.TemporaryDirectory(prefix="gwd")
        self.config_path = Path(self._data.name) / "gw.json"
        document = {
            "auth": {"mode": "none"},
            **config,
            "server": {
                "host": place.address,
                "admin_host": place.address,
                **config.get("server", {}),
                "port": self.port,
                "admin_port": self.admin_port,
                "workers": workers,
            },
            "redis": {
                **config.get("redis", {}),
                "url": redis_url,
                "data_dir": f"{self._data.name}/redis",
            },
        }
        self.config_path.write_text(json.dumps(document))
        words = ("serve", "--config", str(self.config_path))
        super().__init__(*words, environ=environ, checkout=checkout, place=place)
        self.base_url = f"http://{place.address}:{self.port}"
        self.admin_url = f"http://{place.address}:{self.admin_port}"
        within_s = READY_S + WORKER_READY_S * workers
        try:
            self.wait_for(f"{self.admin_url}/readyz", within_s)
            self.wait_for_all_workers(within_s)
        except BaseException:
            self.close()
            raise

    def wait_for_all_workers(self, within_s: float = READY_S) -> None:
        """Wait until every worker serves; the port answers as soon as one does."""
        until = time.monotonic() + within_s
        while not self._is_complete():
            assert time.monotonic() < until, self.log()
            time.sleep(0.05)

    def _is_complete(self) -> bool:
        if self._has_redis:
            return bool(get_json(f"{self.admin_url}/readyz")["status"] == "ready")
        return self.log().count('"event":"worker.started"') == self._workers

    def worker_pids(self) -> list[int]:
        """Worker processes alive now."""
        return [pid for pid in self._children() if b"worker" in _read(pid, "cmdline").split(b"\0")]

    def valkey_pid(self) -> int:
        """The embedded server, recognised by its binary: it rewrites its command line."""
        return next(
            pid
            for pid in self._children()
            if os.path.realpath(f"/proc/{pid}/exe").endswith("valkey-server")
        )

    def _children(self) -> list[int]:
        pids = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
        return sorted(pid for pid in pids if _parent(pid) == self.process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()
        self._data.cleanup()


def _path_of(checkout: Path | None) -> dict[str, str]:
    return {} if checkout is None else {"PYTHONPATH": str(checkout)}


def _read(pid: int, name: str) -> bytes:
    """A file of a process; empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0
