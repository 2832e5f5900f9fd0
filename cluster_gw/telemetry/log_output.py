"""Where finished log lines go: at once, or by a thread that may wait for whoever reads them.

A pipe whose reader stalls is full after 64 KB, and a write to it waits. In a loop that would stop
every request, so a process that serves hands its lines to a thread, through a buffer with an end.
To tell the pipe not to block is no way out: that would hold for everybody who writes to it, such as
the shell that a terminal belongs to.
"""

import contextlib
import os
import select
import sys
import threading
from queue import SimpleQueue
from typing import IO, Any, Final, Protocol

MAX_BUFFER_BYTES: Final = 8 * 1024 * 1024  # at 300 bytes a line 28,000 of them
CLOSE_WITHIN_S: Final = 1.0


class Output(Protocol):
    """Takes lines; never raises."""

    @property
    def lost_lines(self) -> int:
        """How many were given up."""

    @property
    def gap_lines(self) -> int:
        """How many of them are to be told of by `take_gap`."""

    def write(self, lines: bytes) -> None:
        """Take whole lines, each with its end."""

    def take_gap(self) -> int:
        """Tell how many lines are missing where the next one goes; 0 while still more are lost."""

    def is_terminal(self) -> bool:
        """Whether a person looks at it."""

    def close(self) -> None:
        """Write what is left."""


class DirectOutput:
    """Writes each line before it goes on.

    Args:
        stream: where lines go.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.lost_lines = 0
        self.gap_lines = 0
        self._stream = stream

    def write(self, lines: bytes) -> None:
        """Write lines; what a pipe that does not block has no room for is lost."""
        rest = memoryview(lines)
        try:
            while rest:
                written = self._stream.write(rest)
                if not written and not self.wait_for_room():
                    break
                rest = rest[written or 0 :]
            self._stream.flush()
        except (OSError, ValueError):  # ValueError: the stream is closed
            self.lost_lines += 0 if rest else 1  # what was taken and not written on
        self.lost_lines += bytes(rest).count(b"\n")

    def wait_for_room(self) -> bool:
        """Wait until the stream takes more; False gives up at once."""
        return False

    def take_gap(self) -> int:
        """Nothing is told later."""
        return 0

    def is_terminal(self) -> bool:
        """Whether the stream is one."""
        try:
            return self._stream.isatty()
        except ValueError:
            return False

    def close(self) -> None:
        """Have the stream write what its own buffer holds."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


class _PatientOutput(DirectOutput):
    """Waits for a full pipe, also for one that was told not to block."""

    def wait_for_room(self) -> bool:
        poll = select.poll()
        poll.register(self._stream.fileno(), select.POLLOUT)
        poll.poll()
        return True


class BufferedOutput:
    """Hands lines to a thread that writes them in order; never waits.

    When the buffer is full, lines are lost until half of it is written again, so that a reader who
    cannot keep up leaves few gaps, not one between every two lines.

    Args:
        stream: where lines go; one without a buffer of its own, which would be locked at exit.
        max_bytes: how much waits at most.
    """

    def __init__(self, stream: IO[bytes], max_bytes: int = MAX_BUFFER_BYTES) -> None:
        self.gap_lines = 0
        self._dropped_lines = 0
        self._max_bytes = max_bytes
        self._direct = _PatientOutput(stream)
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        # Each has one writer: the caller counts what goes in, the thread what came out.
        self._taken_bytes = 0
        self._written_bytes = 0
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    @property
    def lost_lines(self) -> int:
        """Lines that found no room, and those that could not be written."""
        return self._dropped_lines + self._direct.lost_lines

    def write(self, lines: bytes) -> None:
        """Hand lines over, or count them as lost."""
        waiting_bytes = self._taken_bytes - self._written_bytes
        if self.gap_lines or waiting_bytes + len(lines) > self._max_bytes:
            count = lines.count(b"\n")
            self.gap_lines += count
            self._dropped_lines += count
            return
        self._taken_bytes += len(lines)
        self._queue.put(lines)

    def take_gap(self) -> int:
        """Tell how many lines were lost in a row once there is room again; then go on."""
        if self._taken_bytes - self._written_bytes > self._max_bytes // 2:
            return 0
        count, self.gap_lines = self.gap_lines, 0
        return count

    def is_terminal(self) -> bool:
        """Whether the stream is one."""
        return self._direct.is_terminal()

    def close(self) -> None:
        """Wait for at most a second until all is written; whoever reads may never come."""
        self._queue.put(None)
        self._thread.join(CLOSE_WITHIN_S)

    def _run(self) -> None:
        while (lines := self._queue.get()) is not None:
            self._direct.write(lines)
            self._written_bytes += len(lines)


def standard_error() -> Any:
    """Give the raw stream: a buffer would keep what cannot be written, and fail again at exit.

    There is none when it was closed before the process began.
    """
    if sys.stderr is None:
        return open(os.devnull, "wb", buffering=0)
    return getattr(sys.stderr.buffer, "raw", sys.stderr.buffer)
