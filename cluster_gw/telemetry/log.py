"""The log of one process: structlog for state changes, a buffer of encoded lines for the hot two.

Both write lines of the same shape to the same stream, as JSON or as text. The hot lines (one per
request, one per failed attempt) skip structlog's processors, which cost 10 µs a line; a timer
writes the buffer. A log that cannot be written (a closed terminal, a full disk) is counted and
never raised: what an event reports must happen all the same.
"""

import functools
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, Final

import msgspec
import structlog

from cluster_gw.telemetry.events import LOG_INTERRUPTED, LOG_THINNED
from cluster_gw.telemetry.line_limit import REST_S, LineLimit
from cluster_gw.telemetry.lines import Event, HotLine, Level
from cluster_gw.telemetry.log_output import BufferedOutput, DirectOutput, Output, standard_error
from cluster_gw.telemetry.text_line import text_line
from cluster_gw.units import NS_PER_S, US_PER_S

MAX_BUFFER_LINES: Final = 256
MOST_LATER: Final = 256
REQUEST_ID: Final = "request_id"
NS_PER_US: Final = 1000
INFO: Final = Level.INFO

Encode = Callable[[Any], bytes]


class Log:
    """Writes declared events; owned by `app`, handed to whoever has something to say.

    Args:
        stream: where lines are written at once; None is standard error, written by a thread, so
            that a reader who stalls stops nobody. See `close`.
        console: lines are text for people instead of JSON, coloured on a terminal unless `NO_COLOR`
            is set; None is text on a terminal and JSON elsewhere.
        monotonic_s: clock by which lines of a trouble are limited.

    Attributes:
        limit: of lines of one trouble.
    """

    def __init__(
        self,
        stream: IO[bytes] | None = None,
        *,
        console: bool | None = False,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = LineLimit(monotonic_s)
        self._unwritable_lines = 0
        self._output: Output = (
            DirectOutput(stream) if stream is not None else BufferedOutput(standard_error())
        )
        self._lines: list[bytes] = []
        self._later: deque[tuple[Event, dict[str, Any]]] = deque(maxlen=MOST_LATER)
        encode: Encode = functools.partial(msgspec.json.encode, enc_hook=str)
        self._encode_hot: Encode = msgspec.json.Encoder().encode
        is_terminal = self._output.is_terminal()
        if is_terminal if console is None else console:
            colors = is_terminal and not os.environ.get("NO_COLOR")
            encode = functools.partial(_encode_text, colors=colors)
            self._encode_hot = lambda line: encode(msgspec.to_builtins(line))
        self._logger = structlog.wrap_logger(
            _Lines(self._write),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                lambda _logger, _name, fields: encode(fields),
            ],
        )

    @property
    def lost_lines(self) -> int:
        """Lines that were given up: no room for them, nobody to take them, no text."""
        return self._unwritable_lines + self._output.lost_lines

    def event(self, event: Event, **fields: Any) -> None:
        """Write a state change at once, after whatever the buffer holds.

        Warnings and errors of one trouble that come too fast are left out, see `LineLimit`.
        """
        if event.level is not Level.INFO:
            left_out = self.limit.ask(event.name, *_reason(fields))
            if left_out is None:
                return
            if left_out:
                fields["suppressed"] = left_out
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
            self._unwritable_lines += 1

    def event_later(self, event: Event, **fields: Any) -> None:
        """Write an event when `tidy` is called next; for other threads than the one that logs."""
        self._later.append((event, fields))

    def hot(self, line: HotLine) -> None:
        """Buffer one request or attempt line, stamped now."""
        line.level = INFO
        line.timestamp = _now()
        try:
            self._lines.append(self._encode_hot(line))
        except ValueError:
            self._unwritable_lines += 1
        if len(self._lines) >= MAX_BUFFER_LINES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered lines."""
        if self._output.gap_lines:
            self._tell_gap()
        if self._lines:
            lines, self._lines = self._lines, []
            self._write(b"\n".join(lines))

    def tidy(self) -> None:
        """Write the buffered lines, and what was left out of troubles that are over."""
        self._tell_later()
        self._tell_thinned(REST_S)
        self.flush()

    def close(self) -> None:
        """Write what is left, for at most a second; the last call."""
        self._tell_later()
        self._tell_thinned(0.0)
        self.flush()
        self._output.close()

    def _tell_later(self) -> None:
        while self._later:
            event, fields = self._later.popleft()
            self.event(event, **fields)

    def _tell_thinned(self, rest_s: float) -> None:
        for event, reason, count in self.limit.take_over(rest_s):
            self.event(LOG_THINNED, of=event, reason=reason, suppressed=count)

    def _tell_gap(self) -> None:
        """Say where lines are missing, and how many, before those that go on."""
        count = self._output.take_gap()
        if count:
            self._logger.warning(LOG_INTERRUPTED.name, count=count)

    def _write(self, lines: bytes) -> None:
        """Write lines, the last of them without its end."""
        self._output.write(lines + b"\n")


class _Lines:
    """What structlog hands finished lines to."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self.info = self.warning = self.error = write


def _reason(fields: Mapping[str, Any]) -> Iterator[str]:
    """What makes a line tell the same trouble as another: its words, but not of which request."""
    return (text for name, text in fields.items() if isinstance(text, str) and name != REQUEST_ID)


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
