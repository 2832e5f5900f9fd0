"""Redis servers of a topology: on loopback ports, frozen, killed and started again by tests."""

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Self

from redis import Connection
from redis.exceptions import RedisError

READY_S: Final = 20.0
POLL_S: Final = 0.02
BUS_OFFSET: Final = 10_000


def free_ports(count: int) -> list[int]:
    """Distinct loopback ports whose cluster bus port, 10,000 above, is free as well.

    They lie below the range from which the system takes ports for outgoing connections.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.randint(11_000, 21_000)
        if port not in found and _is_free(port) and _is_free(port + BUS_OFFSET):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def until(holds: Callable[[], bool], what: str, within_s: float = READY_S) -> None:
    """Wait until something holds that servers do by themselves."""
    deadline_s = time.monotonic() + within_s
    while True:
        try:
            if holds():
                return
        except RedisError:
            pass
        if time.monotonic() > deadline_s:
            raise AssertionError(f"{what}: not within {within_s} s")
        time.sleep(POLL_S)


class RedisNode:
    """One server process on a loopback port, without persistence.

    Args:
        words: options of the command line; `--sentinel` needs a file first, see `config`.
        config: content of a configuration file, which the server may rewrite.
    """

    def __init__(self, binary: str, port: int, *words: str, config: str = "") -> None:
        self.port = port
        self.folder = Path(tempfile.mkdtemp(prefix="gwn", dir="/tmp"))
        file = self.folder / "redis.conf"
        file.write_text(config)
        self._command = [
            *(binary, str(file), "--port", str(port), "--bind", "127.0.0.1"),
            *("--dir", str(self.folder), *words),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.is_frozen = False

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(lambda: bool(self.call("PING")), f"server on port {self.port}")

    def call(self, *words: str) -> Any:
        """One command on a connection of its own, decoded, in the server's own shape."""
        link = Connection(  # type: ignore[no-untyped-call]
            host="127.0.0.1",
            port=self.port,
            protocol=2,
            decode_responses=True,
            encoding_errors="surrogateescape",  # counters are bytes
            socket_timeout=2,
        )
        try:
            link.connect()  # type: ignore[no-untyped-call]
            link.send_command(*words)  # type: ignore[no-untyped-call]
            return link.read_response()
        finally:
            link.disconnect()  # type: ignore[no-untyped-call]

    def info(self, section: str) -> dict[str, Any]:
        """A section of INFO; values of several fields are a mapping themselves."""
        pairs = (line.split(":", 1) for line in self.call("INFO", section).splitlines())
        return {pair[0]: _value(pair[1]) for pair in pairs if len(pair) > 1}

    @property
    def is_running(self) -> bool:
        """Whether the process is there, frozen or not."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Stop the process; its sockets stay open."""
        self._signal(signal.SIGSTOP)
        self.is_frozen = True

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)
        self.is_frozen = False

    def remove(self) -> None:
        """End it and remove its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            os.kill(self._process.pid, number)


def _value(text: str) -> Any:
    if "=" in text:
        return dict(_value_pair(part) for part in text.split(","))
    return int(text) if text.isdigit() else text


def _value_pair(part: str) -> tuple[str, Any]:
    name, _, value = part.partition("=")
    return name, _value(value)


class NodeGroup(ABC):
    """Servers that belong together; `with` starts and ends them."""

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        for node in self._all_nodes():
            node.remove()

    @abstractmethod
    def _start(self) -> None:
        """Start them, until they work together."""

    @abstractmethod
    def _all_nodes(self) -> Iterable[RedisNode]:
        """Every one of them."""
