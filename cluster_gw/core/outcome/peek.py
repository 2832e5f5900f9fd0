"""Looks at the start of a stream before the client sees any of it.

While a stream is held, another candidate can still be tried and a true status can still be sent;
after `Commit` neither is possible. The machine has no clock: every call says what time it is.
Room 8 of the walk.
"""

from typing import Final

import msgspec

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.canonical.failure import Fault, FaultKind

UPSTREAM_ERROR: Final = "peek.upstream_error"
EMPTY: Final = "peek.empty"
BLANK: Final = "peek.blank"
TOO_LARGE: Final = "peek.too_large"
IDLE: Final = "peek.idle"
TOTAL: Final = "peek.total"
CLOSED: Final = "peek.closed"

PEEK_CODES: Final = (UPSTREAM_ERROR, EMPTY, BLANK, TOO_LARGE, IDLE, TOTAL, CLOSED)


class PeekPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of a peek.

    Attributes:
        idle_ms: silence that rejects while another attempt would be started.
        last_idle_ms: silence that rejects when none would: local models are silent for long.
        max_blank: events that say nothing (role only, blank text) before the stream is rejected.
        max_bytes: payload bytes held at most.
        max_total_ms: time to commit at most, only while another attempt would be started.
    """

    idle_ms: int = 5000
    last_idle_ms: int = 120_000
    max_blank: int = 8
    max_bytes: int = 1_048_576
    max_total_ms: int = 60_000


class Hold(msgspec.Struct, frozen=True):
    """Keep reading; nothing may be sent yet."""


class Commit(msgspec.Struct, frozen=True):
    """The stream is an answer: send all of `Peek.held`, then relay live."""


class Reject(msgspec.Struct, frozen=True, kw_only=True):
    """The stream is no answer: drop it, cancel the upstream call, try the next candidate.

    Attributes:
        code: one of `PEEK_CODES`.
        fault: what to classify; an upstream's own error keeps its kind, status and stated wait.
    """

    code: str
    fault: Fault


PeekResult = Hold | Commit | Reject

REFUSED: Final = "content_filter"  # whoever was refused is told so, not sent elsewhere
HOLD: Final = Hold()
COMMIT: Final = Commit()


class Peek:
    """One peek at one stream.

    Args:
        policy: the bounds.
        is_last: no further attempt would be started if this one failed.
        started_ms: when the stream was opened.
        accept_empty: the combo's gate lets empty answers pass, so an empty end commits.
        choices: answers the client asked for; the stream ends when all of them have.

    Attributes:
        held: every event fed so far, in order.
    """

    def __init__(
        self,
        policy: PeekPolicy,
        *,
        is_last: bool,
        started_ms: int,
        accept_empty: bool = False,
        choices: int = 1,
    ) -> None:
        self.held: list[StreamEvent] = []
        self._policy = policy
        self._is_last = is_last
        self._accept_empty = accept_empty
        self._started_ms = started_ms
        self._last_ms = started_ms
        self._choices = choices
        self._ended_choices: set[int] = set()
        self._is_refused = False
        self._blank = 0
        self._bytes = 0
        self._call: tuple[int, str | None] | None = None

    def feed(self, event: StreamEvent, now_ms: int) -> PeekResult:
        """Take the next event and tell what follows from all events so far."""
        self.held.append(event)
        self._last_ms = now_ms
        self._bytes += len(event.raw)
        if event.fault is not None:
            return Reject(code=UPSTREAM_ERROR, fault=event.fault)
        if event.text and not event.text.isspace():
            return COMMIT
        if event.has_media:
            return COMMIT
        next_call_began = self._follow_calls(event)
        self._ended_choices.update(event.ended_choices)
        self._is_refused = self._is_refused or event.finish_reason == REFUSED
        if event.done or len(self._ended_choices) >= self._choices:
            return self._ended()
        if next_call_began:
            return COMMIT
        return self._bounded(event)

    def touch(self, now_ms: int) -> None:
        """Note a sign of life that is no event, such as a comment line."""
        self._last_ms = now_ms

    def next_deadline_ms(self) -> int:
        """When `expire` must be called if nothing comes before, on the caller's clock."""
        if self._is_last:
            return self._last_ms + self._policy.last_idle_ms
        return min(
            self._last_ms + self._policy.idle_ms, self._started_ms + self._policy.max_total_ms
        )

    def expire(self, now_ms: int) -> Reject | Hold:
        """Reject when a deadline has passed; `Hold` when a timer came too early."""
        if now_ms < self.next_deadline_ms():
            return HOLD
        if not self._is_last and now_ms >= self._started_ms + self._policy.max_total_ms:
            return rejected(TOTAL, f"no content within {self._policy.max_total_ms} ms")
        return rejected(IDLE, f"silent for {now_ms - self._last_ms} ms before any content")

    def close(self, now_ms: int) -> Reject:
        """Reject because the stream ended before anything committed."""
        return rejected(CLOSED, f"ended without content after {now_ms - self._started_ms} ms")

    def _follow_calls(self, event: StreamEvent) -> bool:
        """Whether a fragment began another call, which makes the call before it complete."""
        began = False
        for delta in event.tool_calls:
            current = self._call
            if current is None:
                self._call = (delta.index, delta.id)
            # Some vendors number every parallel call 0: a fresh id is a fresh call as well.
            elif delta.index != current[0] or (delta.id and current[1] and delta.id != current[1]):
                self._call = (delta.index, delta.id)
                began = True
            elif delta.id and current[1] is None:
                self._call = (delta.index, delta.id)
        return began

    def _ended(self) -> PeekResult:
        if self._call is not None or self._accept_empty or self._is_refused:
            return COMMIT
        if any(event.lost for event in self.held):
            return COMMIT  # what a tool of the vendor's own did is as little nothing as a call is
        return rejected(EMPTY, "ended without text and without a tool call")

    def _bounded(self, event: StreamEvent) -> PeekResult:
        if self._bytes > self._policy.max_bytes:
            # Nothing else would be tried: relaying loses less than throwing the answer away.
            if self._is_last:
                return COMMIT
            return rejected(TOO_LARGE, f"no content in the first {self._bytes} bytes")
        if event.tool_calls or (event.reasoning and not event.reasoning.isspace()):
            return HOLD
        if event.is_structure or event.signature:
            return HOLD
        self._blank += 1
        if self._blank >= self._policy.max_blank:
            return rejected(BLANK, f"{self._blank} events without content")
        return HOLD


def rejected(code: str, message: str) -> Reject:
    """Make the rejection of a stream that broke a bound of the peek itself."""
    return Reject(code=code, fault=Fault(kind=FaultKind.PEEK, reason=code, message=message))
