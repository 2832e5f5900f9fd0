"""Decodes a stream of Anthropic's dialect: one event per frame, each frame read exactly once."""

from typing import Final

import msgspec

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.providers.anthropic_errors import vendor_fault
from cluster_gw.providers.anthropic_facts import (
    CITATIONS,
    NO_INPUT,
    finish_of,
    larger,
    lost_of,
    usage_of,
)
from cluster_gw.providers.framed_stream import LIFE_EVENTS, FramedStreamDecoder
from cluster_gw.providers.openai_errors import document_of, malformed_fault
from cluster_gw.wire.anthropic_answer import (
    EVENT_LAX,
    EVENT_READER,
    AnswerBlock,
    Delta,
    EventBody,
    UsageBody,
)
from cluster_gw.wire.anthropic_messages import MESSAGE_STOP, SIGNED
from cluster_gw.wire.json_codec import (
    InvalidJsonError,
    UnexpectedShapeError,
    UnpairedSurrogateError,
    read_any,
    write,
)
from cluster_gw.wire.openai_chat import DONE
from cluster_gw.wire.sse import SseFrame

ERROR: Final = "error"
CITED: Final = "citations_delta"
MAX_KEPT: Final = 4 * 1_048_576  # bytes of calls: nobody calls like that, and it must have a bound
CALL_OVERHEAD: Final = 256
LIFE: Final = frozenset(name.decode() for name in LIFE_EVENTS)


class OpenCall(msgspec.Struct, gc=False):
    """A call of a tool that has begun.

    Attributes:
        number: among the calls of this answer.
        whole: its arguments, where they came with its beginning.
        has_pieces: some of its arguments have come.
    """

    number: int
    whole: str
    has_pieces: bool = False


class AnthropicStreamDecoder(FramedStreamDecoder):
    """Turns the bytes of one stream into events; see `providers.base.StreamDecoder`.

    Args:
        secret: credential of the call, for redaction.
    """

    def __init__(self, secret: str | None) -> None:
        super().__init__(secret)
        self._calls: dict[int, OpenCall] = {}
        self._call_count = 0
        self._kept = 0
        self._usage: UsageBody | None = None

    def _take(self, frame: SseFrame, events: list[StreamEvent]) -> None:
        event = self._event(frame)
        if event is None:
            self._pings += 1
            return
        self._is_over = event.done or event.fault is not None
        events.append(event)

    def _event(self, frame: SseFrame) -> StreamEvent | None:
        """The event of a frame; None for a mere sign of life."""
        data = frame.data
        if data.find(b"\n") >= 0:
            data = b" ".join(data.split(b"\n"))
        if not data.strip() or data.strip() == DONE:
            return None  # the end marker of another dialect, which compatible servers add
        try:
            body = event_body(data)
        except InvalidJsonError:
            return broken(data, "a frame of the stream is no JSON")
        except UnexpectedShapeError:
            body = EventBody(type=type_in(data))
            if body.type != ERROR:
                return broken(data, "a frame of the stream has another shape than the format's")
        kind = body.type or (frame.event or b"").decode("utf-8", "replace")
        if kind in LIFE:
            return None
        if kind == ERROR:
            return StreamEvent(raw=data, fault=vendor_fault(document_of(data), self._secret))
        return self._told(kind, body, data)

    def _told(self, kind: str, body: EventBody, data: bytes) -> StreamEvent:
        name = kind.encode()
        if kind == "content_block_delta" and body.delta is not None:
            return self._delta(body.index, body.delta, data, name)
        if kind == "content_block_start" and body.content_block is not None:
            return self._begun(body.index, body.content_block, data, name)
        if kind == "content_block_stop":
            return self._stopped(body.index, data, name)
        if kind == "message_start" and body.message is not None:
            self._usage = larger(self._usage, body.message.usage)
        elif kind == "message_delta":
            return self._ending(body, data, name)
        elif kind == MESSAGE_STOP:
            return StreamEvent(raw=data, name=name, done=True)
        return StreamEvent(raw=data, name=name, is_structure=True)

    def _delta(self, index: int, delta: Delta, data: bytes, name: bytes) -> StreamEvent:
        if delta.text:
            return StreamEvent(raw=data, name=name, text=delta.text, is_plain=True)
        if delta.thinking:
            return StreamEvent(raw=data, name=name, reasoning=delta.thinking, is_plain=True)
        if delta.signature:
            return StreamEvent(raw=data, name=name, signature=SIGNED + delta.signature)
        call = self._calls.get(index)
        if delta.partial_json and call is not None:
            call.has_pieces = True
            piece = ToolCallDelta(index=call.number, arguments=delta.partial_json)
            return StreamEvent(raw=data, name=name, tool_calls=(piece,))
        is_cited = delta.type == CITED
        return StreamEvent(
            raw=data,
            name=name,
            is_structure=not is_blank(delta),
            lost=self._newly_lost(CITATIONS) if is_cited else (),
            unsaid=len(delta.partial_json or ""),
        )

    def _begun(self, index: int, block: AnswerBlock, data: bytes, name: bytes) -> StreamEvent:
        if block.type == "tool_use":
            whole = bytes(block.input).decode("utf-8", "replace") or NO_INPUT
            self._kept += len(whole) + CALL_OVERHEAD
            if self._kept > MAX_KEPT:
                fault = Fault(kind=FaultKind.TOO_LARGE, message="too many calls of tools")
                return StreamEvent(raw=data, name=name, fault=fault)
            call = self._calls[index] = OpenCall(number=self._call_count, whole=whole)
            self._call_count += 1
            first = ToolCallDelta(index=call.number, id=block.id or None, name=block.name or "")
            return StreamEvent(raw=data, name=name, tool_calls=(first,))
        if block.type == "redacted_thinking":
            proof = SIGNED + (block.data or "")
            return StreamEvent(raw=data, name=name, signature=proof, is_redacted=True)
        # Some compatible servers put the first words here; the vendor's own are empty.
        return StreamEvent(
            raw=data,
            name=name,
            text=(block.text or "") if block.type == "text" else "",
            reasoning=(block.thinking or "") if block.type == "thinking" else "",
            is_structure=True,
            lost=self._newly_lost(*lost_of(block)),
        )

    def _stopped(self, index: int, data: bytes, name: bytes) -> StreamEvent:
        call = self._calls.pop(index, None)
        if call is None or call.has_pieces:
            return StreamEvent(raw=data, name=name, is_structure=True)
        whole = ToolCallDelta(index=call.number, arguments=call.whole)
        return StreamEvent(raw=data, name=name, tool_calls=(whole,))

    def _ending(self, body: EventBody, data: bytes, name: bytes) -> StreamEvent:
        self._usage = larger(self._usage, body.usage)
        delta = body.delta or Delta()
        reason = finish_of(delta.stop_reason)
        return StreamEvent(
            raw=data,
            name=name,
            finish_reason=reason,
            ended_choices=() if reason is None else (0,),
            usage=usage_of(self._usage),
            stop_sequence=delta.stop_sequence,
            is_structure=True,
        )


def is_blank(delta: Delta) -> bool:
    """Whether a delta is one of words and has none."""
    return delta.type in {"text_delta", "thinking_delta"}


def event_body(data: bytes) -> EventBody:
    """A frame, even one with numbers as text or half an emoji.

    Raises:
        InvalidJsonError, UnexpectedShapeError: it is none.
    """
    try:
        return EVENT_READER.read(data)
    except (UnexpectedShapeError, UnpairedSurrogateError):
        return EVENT_LAX.read(write(read_any(data)))


def type_in(data: bytes) -> str:
    """The kind of a frame of which nothing else can be read."""
    document = document_of(data)
    kind = document.get("type") if isinstance(document, dict) else None
    return kind if isinstance(kind, str) else ""


def broken(data: bytes, problem: str) -> StreamEvent:
    """The event of a frame that cannot be read."""
    return StreamEvent(raw=data, fault=malformed_fault(problem))
