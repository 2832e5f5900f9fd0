"""The log of one worker: structlog for state changes, a buffer of encoded lines for the hot two.

Both write JSON lines of the same shape to the same stream. The hot lines (one per request, one per
failed attempt) skip structlog's processors, which cost 10 µs a line; a timer writes the buffer.
"""

import functools
import sys
import time
from typing import IO, Any, Final

import msgspec
import structlog

from cluster_gw.telemetry.events import Event, HotLine, Level

MAX_BUFFER_LINES: Final = 256
NS_PER_S: Final = 1_000_000_000
NS_PER_US: Final = 1000
US_PER_S: Final = 1_000_000


class Log:
    """Writes declared events; owned by `app`, handed to whoever has something to say."""

    def __init__(self, stream: IO[bytes] | None = None, *, console: bool = False) -> None:
        self._stream = stream if stream is not None else sys.stderr.buffer
        self._encoder = msgspec.json.Encoder()
        self._lines: list[bytes] = []
        self._logger = structlog.wrap_logger(
            structlog.BytesLogger(self._stream),  # type: ignore[arg-type]
            processors=_processors(console=console, colors=self._stream.isatty()),
        )

    def event(self, event: Event, **fields: Any) -> None:
        """Write a state change at once, after whatever the buffer holds."""
        self.flush()
        match event.level:
            case Level.INFO:
                self._logger.info(event.name, **fields)
            case Level.WARNING:
                self._logger.warning(event.name, **fields)
            case Level.ERROR:
                self._logger.error(event.name, **fields)

    def hot(self, line: HotLine) -> None:
        """Buffer one request or attempt line, stamped now."""
        line.level = Level.INFO.value
        line.timestamp = _now()
        self._lines.append(self._encoder.encode(line))
        if len(self._lines) >= MAX_BUFFER_LINES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered lines."""
        if not self._lines:
            return
        lines, self._lines = self._lines, []
        self._stream.write(b"\n".join(lines) + b"\n")
        self._stream.flush()


def _processors(*, console: bool, colors: bool) -> list[structlog.typing.Processor]:
    shared: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if console:
        render = structlog.dev.ConsoleRenderer(colors=colors)
        return [*shared, lambda logger, name, event: render(logger, name, event).encode()]
    return [*shared, structlog.processors.JSONRenderer(serializer=msgspec_dumps)]


def msgspec_dumps(value: Any, **_options: Any) -> bytes:
    """Encode a log line; unknown types are written as their text."""
    return msgspec.json.encode(value, enc_hook=str)


def _now() -> str:
    """The time as structlog writes it; `time.strftime` of whole seconds beats `isoformat`."""
    now_ns = time.time_ns()
    seconds = now_ns // NS_PER_S
    return f"{_second(seconds)}.{now_ns // NS_PER_US % US_PER_S:06d}Z"


@functools.lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
