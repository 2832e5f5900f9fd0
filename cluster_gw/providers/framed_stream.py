"""What the stream decoders of all dialects share: frames, their bounds, and the end."""

from abc import ABC, abstractmethod
from typing import Final

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.wire.sse import SseFrame, SseFramer

LONGEST_END: Final = 64  # an end marker with any blanks around it
MOST_LOST: Final = 32  # names that are told; they are the vendor's, and must have a bound
LOST_CHARACTERS: Final = 120
LIFE_EVENTS: Final = frozenset({b"ping", b"heartbeat", b"keepalive", b"keep-alive"})


class FramedStreamDecoder(ABC):
    """Cuts the bytes of one stream into frames; a dialect says what each of them means.

    See `providers.base.StreamDecoder`. A dialect sets `_is_over` with its last event, and counts
    frames that say nothing in `_pings`.

    Args:
        secret: credential of the call, for redaction.
    """

    def __init__(self, secret: str | None) -> None:
        self._secret = secret
        self._framer = SseFramer()
        self._is_over = False
        self._pings = 0
        self._lost: set[str] = set()

    @property
    def signs_of_life(self) -> int:
        """Pings, comments and other lines that carry no event, counted since the start."""
        return self._framer.signs_of_life + self._pings

    def decode(self, chunk: bytes) -> list[StreamEvent]:
        """Take the next bytes and give the events completed by them."""
        events = self._events(self._framer.feed(chunk))
        if self._framer.is_overflowing and not self._is_over:
            self._is_over = True
            fault = Fault(kind=FaultKind.TOO_LARGE, message="one frame of the stream is too large")
            events.append(StreamEvent(fault=fault))
        return events

    def flush(self) -> list[StreamEvent]:
        """Take the clean end of the stream."""
        events = self._events(self._framer.flush())
        if events and (fault := events[-1].fault) and fault.kind is FaultKind.MALFORMED:
            # Half a frame at the end is a cut, not nonsense: the missing end says it.
            del events[-1]
        elif not self._is_over:
            events += self._closing()
        self._is_over = True
        return events

    def _events(self, frames: list[SseFrame]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for frame in frames:
            if self._is_over:
                break
            self._take(frame, events)
        return events

    def _newly_lost(self, *names: str) -> tuple[str, ...]:
        """Those of some names for what has no words here that were not told before."""
        told: list[str] = []
        for name in names:
            short = name[:LOST_CHARACTERS]
            if short and short not in self._lost and len(self._lost) < MOST_LOST:
                self._lost.add(short)
                told.append(short)
        return tuple(told)

    @abstractmethod
    def _take(self, frame: SseFrame, events: list[StreamEvent]) -> None:
        """Add the events of one frame; none for a mere sign of life."""

    def _closing(self) -> list[StreamEvent]:
        """What the clean end of a stream says, in a dialect that has no other end."""
        return []
