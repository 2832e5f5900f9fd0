"""Decodes a stream of the Responses dialect: each frame is read once."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.providers.framed_stream import LIFE_EVENTS, LONGEST_END, FramedStreamDecoder
from cluster_gw.providers.openai_errors import document_of, in_band_fault, malformed_fault
from cluster_gw.providers.openai_responses_facts import (
    ANNOTATIONS,
    BETWEEN_SUMMARIES,
    FUNCTION_CALL,
    IMAGE,
    REASONING,
    call_id,
    call_name,
    image_of,
    kept_as,
    lost_of,
    reason_of_cut,
    reason_of_whole,
    signature_of,
    usage_of,
)
from cluster_gw.wire.error_body import ErrorFacts, read_error
from cluster_gw.wire.json_codec import (
    InvalidJsonError,
    UnexpectedShapeError,
    UnpairedSurrogateError,
    cleaned,
)
from cluster_gw.wire.openai_responses import EVENT_READER, EventBody, OutputItem
from cluster_gw.wire.sse import SseFrame

COMPLETED: Final = "response.completed"
INCOMPLETE: Final = "response.incomplete"
ENDS: Final = frozenset({COMPLETED, INCOMPLETE})
FAILURES: Final = frozenset({"response.failed", "error"})
TEXT: Final = "response.output_text.delta"
REFUSAL: Final = "response.refusal.delta"
THOUGHTS: Final = frozenset(
    {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
)
NEXT_THOUGHT: Final = "response.reasoning_summary_part.added"
PIECES: Final = frozenset(
    {"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"}
)
ALL_ARGUMENTS: Final = "response.function_call_arguments.done"
ADDED: Final = "response.output_item.added"
DONE: Final = "response.output_item.done"
ANNOTATED: Final = "response.output_text.annotation.added"
MAX_CALLS: Final = 4096  # nobody calls so many; what is kept of them must have a bound
END: Final = b"[DONE]"


class ResponsesStreamDecoder(FramedStreamDecoder):
    """Turns the bytes of one stream into events; see `providers.base.StreamDecoder`.

    An answer ends by an event of its own. What providers send behind it is not read; without it
    an end marker of the chat format ends nothing.

    Args:
        secret: credential of the call, for redaction.
    """

    def __init__(self, secret: str | None) -> None:
        super().__init__(secret)
        self._calls: dict[int, int] = {}  # number of a call, by its place in the output
        self._told: dict[int, int] = {}  # characters of its arguments that were told
        self._has_functions = False

    def _take(self, frame: SseFrame, events: list[StreamEvent]) -> None:
        data, name = frame.data, frame.event or b""
        if name in LIFE_EVENTS or not data or (len(data) < LONGEST_END and data.strip() == END):
            self._pings += 1
            return
        if data.find(b"\n") >= 0:
            data = b" ".join(data.split(b"\n"))
        event = self._read(data, name)
        if isinstance(event, Fault):
            self._end(StreamEvent(raw=data, name=name, fault=event), events)
        elif event.type in ENDS:
            self._end(self._last(data, name, event), events)
            events.append(StreamEvent(done=True))
        else:
            said = self._event(data, name, event)
            self._is_over = said.fault is not None
            events.append(said)

    def _read(self, data: bytes, name: bytes) -> EventBody | Fault:
        """What a frame says, or the fault that it tells of, or is."""
        try:
            body = EVENT_READER.read(data)
        except (UnexpectedShapeError, UnpairedSurrogateError):
            document = document_of(data)
            if not isinstance(document, dict):
                return malformed_fault("a frame of the stream is no JSON object")
            if document.get("error"):
                return self._failed(document)
            body = bent_event(document, name)
        except InvalidJsonError:
            return malformed_fault("a frame of the stream is no JSON")
        return self._failed(document_of(data)) if body.type in FAILURES else body

    def _end(self, event: StreamEvent, events: list[StreamEvent]) -> None:
        self._is_over = True
        events.append(event)

    def _last(self, data: bytes, name: bytes, body: EventBody) -> StreamEvent:
        response = body.response
        reason = reason_of_whole(has_calls=self._has_functions)
        if body.type == INCOMPLETE:
            reason = reason_of_cut(None if response is None else response.incomplete_details)
        return StreamEvent(
            raw=data,
            name=name,
            finish_reason=reason,
            ended_choices=(0,),
            usage=None if response is None else usage_of(response.usage),
            kept_as="" if response is None else kept_as(response),
        )

    def _failed(self, document: Any) -> Fault:
        told = document.get("response") or document if isinstance(document, dict) else document
        facts = read_error(told) or ErrorFacts(message="the answer failed")
        return in_band_fault(facts, told, self._secret)

    def _event(self, data: bytes, name: bytes, body: EventBody) -> StreamEvent:
        kind = body.type
        delta = body.delta if isinstance(body.delta, str) else ""
        if kind == TEXT:
            return StreamEvent(raw=data, name=name, text=delta, is_plain=True)
        if kind in THOUGHTS:
            return StreamEvent(raw=data, name=name, reasoning=delta, is_plain=True)
        if kind in PIECES:
            return self._called(data, name, body.output_index, delta)
        return self._seldom(data, name, body, delta)

    def _seldom(self, data: bytes, name: bytes, body: EventBody, delta: str) -> StreamEvent:
        """What comes once an item, or hardly ever."""
        kind, place = body.type, body.output_index
        if kind in {ADDED, DONE} and body.item is not None:
            return self._item(data, name, body, body.item)
        if kind == ALL_ARGUMENTS:
            return self._called(data, name, place, self._rest_of(place, body.arguments or ""))
        if kind == REFUSAL:
            return StreamEvent(raw=data, name=name, text=delta, is_refusal=True)
        if kind == NEXT_THOUGHT and body.summary_index > 0:
            return StreamEvent(raw=data, name=name, reasoning=BETWEEN_SUMMARIES)
        if kind == ANNOTATED:
            lost = self._newly_lost(ANNOTATIONS)
            return StreamEvent(raw=data, name=name, is_structure=True, lost=lost)
        return StreamEvent(raw=data, name=name, is_structure=True)

    def _item(self, data: bytes, name: bytes, body: EventBody, item: OutputItem) -> StreamEvent:
        """The begin or the end of an item."""
        place = body.output_index
        if item.type == REASONING and body.type == DONE:
            signature = signature_of(item)
            return StreamEvent(
                raw=data,
                name=name,
                signature=signature,
                is_redacted=bool(signature) and not (item.summary or item.content),
                is_structure=True,
            )
        if item.type == IMAGE and body.type == DONE:
            media = image_of(item)
            return StreamEvent(
                raw=data, name=name, media=media, has_media=bool(media), is_structure=True
            )
        if item.type != FUNCTION_CALL:
            lost = self._newly_lost(*lost_of(item))
            return StreamEvent(raw=data, name=name, is_structure=True, lost=lost)
        if place in self._calls:
            return self._called(data, name, place, self._rest_of(place, item.arguments or ""))
        if len(self._calls) >= MAX_CALLS:
            fault = Fault(kind=FaultKind.TOO_LARGE, message="too many calls of tools")
            return StreamEvent(raw=data, name=name, fault=fault)
        self._has_functions = True
        number = self._calls[place] = len(self._calls)
        arguments = item.arguments or ""
        self._told[place] = len(arguments)
        call = ToolCallDelta(
            index=number, id=call_id(item), name=call_name(item), arguments=arguments
        )
        return StreamEvent(raw=data, name=name, tool_calls=(call,))

    def _called(self, data: bytes, name: bytes, place: int, arguments: str) -> StreamEvent:
        """More of a call that has begun."""
        number = self._calls.get(place)
        if number is None or not arguments:
            # What is written for a tool that only this vendor knows counts all the same.
            return StreamEvent(raw=data, name=name, is_structure=True, unsaid=len(arguments))
        self._told[place] += len(arguments)
        call = ToolCallDelta(index=number, arguments=arguments)
        return StreamEvent(raw=data, name=name, tool_calls=(call,))

    def _rest_of(self, place: int, arguments: str) -> str:
        """What of all arguments was not told in pieces: some providers send them whole."""
        return arguments[self._told.get(place, 0) :]


def bent_event(document: Mapping[str, Any], name: bytes) -> EventBody:
    """What an event says that bends the format: all of it if only half an emoji is the matter."""
    try:
        try:
            return msgspec.convert(document, EventBody)
        except UnicodeEncodeError:  # the half stands where no text is read: in a name, or amiss
            return msgspec.convert(cleaned(document), EventBody)
    except msgspec.ValidationError:
        pass
    kind, delta = document.get("type"), document.get("delta")
    return EventBody(
        type=kind if isinstance(kind, str) else name.decode("utf-8", "replace"),
        delta=delta if isinstance(delta, str) else None,
    )
