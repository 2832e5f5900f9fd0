"""The log of one process: structlog for state changes, a buffer of encoded lines for the hot two.

Both write lines of the same shape to the same stream, as JSON or as text. The hot lines (one per
request, one per failed attempt) skip structlog's processors, which cost 10 µs a line; a timer
writes the buffer. A log that cannot be written (a closed terminal, a full disk) is counted and
never raised: what an event reports must happen all the same.
"""

import functools
import os
import sys
import time
from collections.abc import Callable
from typing import IO, Any, Final

import msgspec
import structlog

from cluster_gw.telemetry.events import Event, HotLine, Level
from cluster_gw.telemetry.text_line import text_line
from cluster_gw.units import US_PER_S

MAX_BUFFER_LINES: Final = 256
NS_PER_S: Final = 1_000_000_000
NS_PER_US: Final = 1000

Encode = Callable[[Any], bytes]


class Log:
    """Writes declared events; owned by `app`, handed to whoever has something to say.

    Args:
        stream: where lines go; None is standard error.
        console: lines are text for people instead of JSON, coloured on a terminal unless `NO_COLOR`
            is set.

    Attributes:
        failed_writes: writes that were given up, wholly or in part.
    """

    def __init__(self, stream: IO[bytes] | None = None, *, console: bool = False) -> None:
        self.failed_writes = 0
        self._stream = stream if stream is not None else _standard_error()
        self._lines: list[bytes] = []
        encode: Encode = functools.partial(msgspec.json.encode, enc_hook=str)
        self._encode_hot: Encode = msgspec.json.Encoder().encode
        if console:
            encode = functools.partial(_encode_text, colors=_has_colors(self._stream))
            self._encode_hot = lambda line: encode(msgspec.to_builtins(line))
        self._logger = structlog.wrap_logger(
            _Lines(self._write),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                lambda _logger, _name, fields: encode(fields),
            ],
        )

    def event(self, event: Event, **fields: Any) -> None:
        """Write a state change at once, after whatever the buffer holds."""
        self.flush()
        try:
            match event.level:
                case Level.INFO:
                    self._logger.info(event.name, **fields)
                case Level.WARNING:
                    self._logger.warning(event.name, **fields)
                case Level.ERROR:
                    self._logger.error(event.name, **fields)
        except ValueError:  # a text that is no Unicode, such as the name of a file
            self.failed_writes += 1

    def hot(self, line: HotLine) -> None:
        """Buffer one request or attempt line, stamped now."""
        line.level = Level.INFO
        line.timestamp = _now()
        try:
            self._lines.append(self._encode_hot(line))
        except ValueError:
            self.failed_writes += 1
        if len(self._lines) >= MAX_BUFFER_LINES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered lines."""
        if self._lines:
            lines, self._lines = self._lines, []
            self._write(b"\n".join(lines))

    def _write(self, lines: bytes) -> None:
        """Write lines, the last of them without its end."""
        rest = memoryview(lines + b"\n")
        try:
            while rest:
                written = self._stream.write(rest)
                if not written:  # a pipe that does not block is full
                    self.failed_writes += 1
                    return
                rest = rest[written:]
            self._stream.flush()
        except (OSError, ValueError):  # ValueError: the stream is closed
            self.failed_writes += 1


class _Lines:
    """What structlog hands finished lines to."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self.info = self.warning = self.error = write


def _standard_error() -> Any:
    """Give the raw stream: a buffer would keep what cannot be written, and fail again at exit.

    There is none when it was closed before the process began.
    """
    if sys.stderr is None:
        return open(os.devnull, "wb", buffering=0)
    return getattr(sys.stderr.buffer, "raw", sys.stderr.buffer)


def _has_colors(stream: IO[bytes]) -> bool:
    try:
        return stream.isatty() and not os.environ.get("NO_COLOR")
    except ValueError:
        return False


def _encode_text(fields: Any, *, colors: bool) -> bytes:
    return text_line(fields, colors=colors).encode("utf-8", "replace")


def _now() -> str:
    """The time as structlog writes it; `time.strftime` of whole seconds beats `isoformat`."""
    now_ns = time.time_ns()
    seconds = now_ns // NS_PER_S
    return f"{_second(seconds)}.{now_ns // NS_PER_US % US_PER_S:06d}Z"


@functools.lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
