"""One process of the group: started, watched, started again with growing pauses, ended."""

import signal
import subprocess
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
STEADY_S: Final = 10.0  # a process that lived this long starts again without a long pause


class Process(Protocol):
    """What is needed of `subprocess.Popen`."""

    @property
    def pid(self) -> int:
        """The process id."""

    def poll(self) -> int | None:
        """The exit code, or None while it lives."""

    def send_signal(self, sig: int) -> None:
        """Send a signal."""


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How a child ended.

    Attributes:
        code: exit code; negative for the number of a signal.
        lived_s: seconds since its start.
        restart_in_s: pause until it is started again.
    """

    pid: int
    code: int
    lived_s: float
    restart_in_s: float


class Child:
    """Keeps one process alive; has no clock and no loop of its own.

    Args:
        name: how logs call it.
        spawn: starts the process; its argument counts the starts from 0.
    """

    def __init__(self, name: str, spawn: Callable[[int], Process]) -> None:
        self.name = name
        self.starts = 0
        self._spawn = spawn
        self._process: Process | None = None
        self._started_s = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._due_s: float | None = None

    @property
    def pid(self) -> int | None:
        """The process id while the process lives."""
        return self._process.pid if self._process is not None else None

    @property
    def restarts(self) -> int:
        """How often it had to be started again."""
        return max(0, self.starts - 1)

    def start(self, now_s: float) -> None:
        """Start the process; nothing happens while it lives."""
        if self._process is None:
            self._due_s = None
            self._process = self._spawn(self.starts)
            self.starts += 1
            self._started_s = now_s

    def tend(self, now_s: float) -> Exit | None:
        """Look after the process: tell once that it ended, and start it again when it is time."""
        if self._due_s is not None and now_s >= self._due_s:
            try:
                self.start(now_s)
            except OSError:  # no process or memory left just now
                self._due_s = now_s + self._pause_s
        code = self._process.poll() if self._process is not None else None
        if self._process is None or code is None:
            return None
        pid, self._process = self._process.pid, None
        lived_s = now_s - self._started_s
        pause_s = FIRST_PAUSE_S if lived_s >= STEADY_S else self._pause_s
        self._pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        self._due_s = now_s + pause_s
        return Exit(pid=pid, code=code, lived_s=lived_s, restart_in_s=pause_s)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process if it lives."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def retire(self) -> None:
        """Start it no more."""
        self._due_s = None

    def has_ended(self) -> bool:
        """Whether no process lives now."""
        return self._process is None or self._process.poll() is not None


def popen(
    command: list[str],
    *,
    environ: dict[str, str],
    pass_fds: tuple[int, ...] = (),
    before_exec: Callable[[], None] | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a process in its own group, so that Ctrl-C reaches the parent alone.

    Must be called from the main thread: the death signal follows the thread that spawned.
    """
    return subprocess.Popen(  # noqa: S603 (the command is ours)
        command,
        stdin=subprocess.DEVNULL,
        env=environ,
        pass_fds=pass_fds,
        process_group=0,
        preexec_fn=before_exec,  # noqa: PLW1509 (its other thread writes the log)
    )
