"""Mends one answer, event by event: a stream as it comes, or a whole answer told as one.

An event that needs no mending is given as the object that came in. Of several answers at once each
has a mender of its own, see `mending.choices`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.outcome.gate import INLINE_CALL
from cluster_gw.mending.calls import MAX_HELD_EVENTS, CallHolder, Settled
from cluster_gw.mending.inline_calls import Reading, read_calls
from cluster_gw.mending.opening import Opening, State
from cluster_gw.mending.policy import MendingPolicy
from cluster_gw.providers.base import RewritingProvider, StreamDecoder

Tools = Mapping[str, Any]
"""Names of the declared tools, each with its schema or None."""

MAX_HELD_BYTES: Final = 8 * 1_048_576
STOP: Final = "stop"
CALLS: Final = "tool_calls"
MOST_BLANK_EVENTS: Final = 7  # held at most: a peek must still see a stream of nothing but blanks

THOUGHTS: Final = "thoughts in tags read as reasoning"
RESCUED: Final = "calls read out of the text"
REPAIRED: Final = "arguments of calls put right"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the text of some events says in truth."""

    reasoning: str = ""
    text: str = ""
    calls: tuple[ToolCallDelta, ...] = ()
    is_broken: bool = False


class Mender:
    """Mends the events of one answer.

    Args:
        policy: what is mended.
        tools: gives the declared tools; None for a request without any, which has no calls.
        call_id: start of the ids of calls that had none.
        rewriting: writes changed frames where frames travel on; None where all are written anew.
        index: of the answer.

    Attributes:
        done: what was mended, in words.
        held: events that were taken and not given yet, counted since the start.
        is_changed: an event says something else than its frame said.
        is_committed: what was given has reached the client.
    """

    def __init__(
        self,
        policy: MendingPolicy,
        *,
        tools: Callable[[], Tools] | None,
        call_id: str,
        rewriting: RewritingProvider | None = None,
        index: int = 0,
    ) -> None:
        self._index = index
        self.done: dict[str, None] = {}
        self.held = 0
        self.is_changed = self.is_committed = False
        self._tools = tools
        self._call_id = call_id
        self._rewriting = rewriting
        names = tools if policy.inline_calls else None
        self._opening = Opening(think_tags=policy.think_tags, names=names)
        self._waiting: list[StreamEvent] = []
        self._waiting_bytes = 0
        self._frame = b""
        self._holder = CallHolder(tools or dict)
        self._holds_calls = tools is not None and policy.tool_arguments
        self._has_calls = False
        self._is_over = False

    @property
    def is_idle(self) -> bool:
        """Whether every further event would pass as it is."""
        return self._is_over or (self._tools is None and self._opening.state is State.TEXT)

    @property
    def weight(self) -> tuple[int, int]:
        """How many events wait now, and the bytes of their frames."""
        holder = self._holder
        return (
            len(self._waiting) + len(holder.held), self._waiting_bytes + holder.held_bytes
        )  # fmt: skip

    def take(self, event: StreamEvent) -> list[StreamEvent]:
        """Take the next event and give what is certain by now."""
        if self._is_over:
            return [event]
        if event.is_plain and self._opening.state is State.TEXT and not self._holder.held:
            return [event]  # most of them, at half the cost
        if event.fault is not None:
            rest = self._let_go() if self.is_committed else []
            self._is_over = True
            return [*rest, event]
        told: list[StreamEvent] = []
        for one in self._read(event):
            if one.fault is not None:
                self._is_over = True
                return [one]
            told += self._follow(one)
        if event.done:
            self._is_over = True
        elif not told:
            self.held += 1
        return told

    def end(self) -> list[StreamEvent]:
        """Take the end of the stream."""
        if self._is_over:
            return []
        if self._opening.state is State.CALL and not self.is_committed:
            # Half a call; what is missing is the end of the stream, and that is what is told.
            self._is_over = True
            problem = "the stream ended inside of a call"
            return [StreamEvent(fault=Fault(kind=FaultKind.NO_TERMINAL, message=problem))]
        return self._let_go()

    def surrender(self) -> list[StreamEvent]:
        """Give all that is held and mend no more."""
        return [] if self._is_over else self._let_go()

    def _let_go(self) -> list[StreamEvent]:
        """Give all that is held, as text where it is not known to be more."""
        followed = [after for one in self._released() for after in self._follow(one)]
        self._is_over = True
        return followed + self._settled(self._holder.release())

    def _read(self, event: StreamEvent) -> list[StreamEvent]:
        """Look for thoughts and calls in the text: the first half of the work."""
        opening = self._opening
        if opening.state is State.TEXT:
            return [event]
        # Whatever was being said before one of these has been said.
        ends = bool(
            event.finish_reason or event.done or event.tool_calls
            or event.has_media or event.is_refusal
        )  # fmt: skip
        if event.text and not event.is_refusal:
            return self._read_text(event, ends=ends)
        if ends:
            return self._read_end(event)
        if not self._waiting:
            return [event]
        if event.reasoning and opening.holds_blanks:
            return [*self._given(Told()), event]  # blanks between thoughts are just that
        self._wait(event)
        return self._spilled()

    def _read_end(self, event: StreamEvent) -> list[StreamEvent]:
        told = self._told(event)
        if told.is_broken:
            return [broken_call()]
        given = self._given(told)
        if told.calls and event.finish_reason is None:
            ended = StreamEvent(raw=self._frame, ended_choices=(self._index,))
            given.append(self._changed(ended, finish_reason=CALLS))
        return [*given, event]

    def _read_text(self, event: StreamEvent, *, ends: bool) -> list[StreamEvent]:
        opening = self._opening
        self._frame = event.raw
        said = opening.take(event.text)
        self._wait(event)
        if ends and opening.state is not State.TEXT:
            rest = self._told(event)
            if rest.is_broken:
                return [broken_call()]
            return self._given(
                Told(
                    reasoning=said.reasoning + rest.reasoning,
                    text=said.text + rest.text,
                    calls=rest.calls,
                )
            )
        if opening.state is State.TEXT or said.reasoning or said.text:
            return self._given(Told(reasoning=said.reasoning, text=said.text))
        if len(self._waiting) >= MOST_BLANK_EVENTS and opening.holds_blanks:
            return self._released()
        return self._spilled()

    def _spilled(self) -> list[StreamEvent]:
        """Give all that waits where it is too much."""
        is_long = self._waiting_bytes > MAX_HELD_BYTES or len(self._waiting) > MAX_HELD_EVENTS
        return self._released() if is_long else []

    def _released(self) -> list[StreamEvent]:
        said = self._opening.release()
        return self._given(Told(reasoning=said.reasoning, text=said.text))

    def _wait(self, event: StreamEvent) -> None:
        self._waiting.append(event)
        self._waiting_bytes += len(event.raw)

    def _told(self, event: StreamEvent) -> Told:
        """Tell what the held text is, now that `event` says that nothing follows it."""
        opening = self._opening
        is_call = opening.state is State.CALL and not event.tool_calls
        said = opening.release()
        if is_call and self._tools is not None:
            reading = read_calls(said.text, self._tools())
            if reading.is_broken and not self.is_committed:
                return Told(is_broken=True)
            if reading.calls:
                self.done[RESCUED] = None
                text = reading.text if reading.text.strip() else ""
                return Told(text=text, calls=minted(reading, self._call_id))
        return Told(reasoning=said.reasoning, text=said.text)

    def _given(self, told: Told) -> list[StreamEvent]:
        """Give the waiting events, with what their text says in truth on the first of them."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not (self._opening.is_changed or told.calls):
            return waiting
        if self._opening.is_changed:
            self.done[THOUGHTS] = None
        given: list[StreamEvent] = []
        is_told = not (told.reasoning or told.text or told.calls)
        for event in waiting:
            if not event.text:
                given.append(event)
            elif not is_told:
                is_told = True
                given.append(self._saying(event, told))
            elif event.usage is not None or event.reasoning or says_more(event):
                given.append(self._changed(event, text=""))
        if not is_told:
            given.append(self._saying(StreamEvent(raw=self._frame), told))
        return given

    def _saying(self, event: StreamEvent, told: Told) -> StreamEvent:
        return self._changed(
            event,
            text=told.text,
            reasoning=told.reasoning + event.reasoning,
            tool_calls=(*event.tool_calls, *told.calls),
        )

    def _follow(self, event: StreamEvent) -> list[StreamEvent]:
        """Look after the calls: the second half of the work."""
        holder = self._holder
        ends = event.done or event.finish_reason is not None
        if event.tool_calls:
            self._has_calls = True
            if self._holds_calls:
                settled = holder.take(event)
                return self._settled(settled + holder.release() if ends else settled)
        if holder.held and not ends:
            return self._settled(holder.keep(event))
        return [*self._settled(holder.release()), self._ended(event)]

    def _settled(self, settled: list[Settled]) -> list[StreamEvent]:
        told: list[StreamEvent] = []
        for one in settled:
            event, calls = one.event, one.tool_calls
            if calls is not None:
                self.done[REPAIRED] = None
                says_more = event.text or event.reasoning or event.finish_reason or event.usage
                if not calls and not says_more:
                    continue
                event = self._changed(event, tool_calls=calls)
            told.append(self._ended(event))
        return told

    def _ended(self, event: StreamEvent) -> StreamEvent:
        """The event that ends an answer; calls win over what the upstream says of its end."""
        if event.finish_reason != STOP or not self._has_calls or self._tools is None:
            return event
        return self._changed(event, finish_reason=CALLS)

    def _changed(self, event: StreamEvent, **facts: Any) -> StreamEvent:
        self.is_changed = True
        fresh = msgspec.structs.replace(event, is_plain=False, pieces=(), **facts)
        if self._index:
            piece = msgspec.structs.replace(fresh, raw=b"", usage=None)
            fresh = msgspec.structs.replace(fresh, pieces=((self._index, piece),))
        if self._rewriting is None:
            return fresh
        return msgspec.structs.replace(fresh, raw=self._rewriting.reframed(event.raw, fresh))


def says_more(event: StreamEvent) -> bool:
    """Whether an event says something beside words."""
    if event.is_plain:
        return False
    # Several answers have no plain events; what is left without its text must not look empty.
    is_end = event.done or event.finish_reason is not None
    has_proof = bool(event.signature or event.kept_as or event.stop_sequence or event.name)
    return is_end or has_proof or bool(event.tool_calls or event.lost) or event.has_media


def minted(reading: Reading, call_id: str) -> tuple[ToolCallDelta, ...]:
    """The calls of a reading, with ids that begin with `call_id`."""
    return tuple(
        ToolCallDelta(index=place, id=f"{call_id}{place}", name=call.name, arguments=call.arguments)
        for place, call in enumerate(reading.calls)
    )


def broken_call() -> StreamEvent:
    """What becomes of an answer that is a call nobody can read: it is tried elsewhere."""
    problem = "the text is a call of a tool that cannot be read"
    return StreamEvent(fault=Fault(kind=FaultKind.GATE, reason=INLINE_CALL, message=problem))


class EventMender(Protocol):
    """What mends a stream of events; see `Mender`."""

    is_committed: bool

    @property
    def done(self) -> dict[str, None]:
        """What was mended, in words."""

    @property
    def held(self) -> int:
        """Events that were taken and not given yet, counted since the start."""

    @property
    def is_changed(self) -> bool:
        """Whether an event says something else than its frame said."""

    @property
    def is_idle(self) -> bool:
        """Whether every further event would pass as it is."""

    def take(self, event: StreamEvent) -> list[StreamEvent]:
        """Take the next event and give what is certain by now."""

    def end(self) -> list[StreamEvent]:
        """Take the end of the stream."""

    def surrender(self) -> list[StreamEvent]:
        """Give all that is held and mend no more."""


class MendingDecoder:
    """A decoder whose events are mended; see `providers.base.StreamDecoder`.

    Args:
        decoder: of the upstream's dialect.
        mender: of this stream.
        keeps: whether the events are also kept as they came, for as long as nothing was sent.

    Attributes:
        kept: those events.
    """

    def __init__(self, decoder: StreamDecoder, mender: EventMender, *, keeps: bool = False) -> None:
        self.kept: list[StreamEvent] = []
        self._keeps = keeps
        self.mender = mender
        self.decoder = decoder
        self._is_over = False

    @property
    def signs_of_life(self) -> int:
        """Those of the stream, and every event that waits: silence is something else."""
        return self.decoder.signs_of_life + self.mender.held

    def decode(self, chunk: bytes) -> list[StreamEvent]:
        """Take the next bytes and give the events that are certain by them."""
        events, mender = self.decoder.decode(chunk), self.mender
        has_to_see = self._is_over or (self._keeps and not mender.is_committed)
        return events if mender.is_idle and not has_to_see else self.mended(events)

    def flush(self) -> list[StreamEvent]:
        """Take the clean end of the stream."""
        events = self.mended(self.decoder.flush())
        return events if self._is_over else events + self.mender.end()

    def mended(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """Take events instead of bytes."""
        told: list[StreamEvent] = []
        if self._keeps and not self.mender.is_committed:
            self.kept += events
        for event in events:
            if self._is_over:
                break
            told += self.mender.take(event)
            self._is_over = bool(told) and (told[-1].done or told[-1].fault is not None)
        return told
