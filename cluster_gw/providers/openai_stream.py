"""Decodes a stream of the OpenAI dialect: one event per frame, each frame read exactly once."""

from collections.abc import Sequence
from typing import Any, Final

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.providers.framed_stream import LIFE_EVENTS, LONGEST_END, FramedStreamDecoder
from cluster_gw.providers.openai_errors import UNREAD, document_of, in_band_fault, malformed_fault
from cluster_gw.providers.openai_facts import (
    calls_of,
    first_reason,
    images_of,
    is_plain,
    joined,
    reasoning_of,
    text_of,
    usage_of,
)
from cluster_gw.providers.openai_tolerant import bend_chunk
from cluster_gw.wire.error_body import ErrorFacts, read_error
from cluster_gw.wire.json_codec import (
    InvalidJsonError,
    UnexpectedShapeError,
    UnpairedSurrogateError,
)
from cluster_gw.wire.openai_chat import (
    CHUNK_READER,
    DONE,
    MAX_CHOICES,
    ChunkBody,
    ChunkChoice,
    SpokenBody,
)
from cluster_gw.wire.sse import SseFrame

NO_ERROR: Final = frozenset({b"null", b"false", b'""', b"{}"})
ERROR_OBJECT: Final = "error"
ERROR_EVENT: Final = b"error"


class OpenAIStreamDecoder(FramedStreamDecoder):
    """Turns the bytes of one stream into events; see `providers.base.StreamDecoder`."""

    def _take(self, frame: SseFrame, events: list[StreamEvent]) -> None:
        data, name = frame.data, frame.event
        if (name is not None and name in LIFE_EVENTS) or not data:
            self._pings += 1
            return
        if data.find(b"\n") >= 0:
            lines = data.split(b"\n")
            data = b" ".join(lines)
            if len(lines) > 1 and document_of(data) is UNREAD:
                # The blank lines between events are missing: every line is an event.
                for line in lines:
                    if not self._is_over:
                        self._take(SseFrame(line, name), events)
                return
        event = self._event(data, is_error=name == ERROR_EVENT)
        self._is_over = event.done or event.fault is not None
        events.append(event)

    def _event(self, data: bytes, *, is_error: bool) -> StreamEvent:
        if len(data) < LONGEST_END and data.strip() == DONE:
            return StreamEvent(raw=DONE, done=True)
        if is_error:
            return self._in_band(data, document_of(data))
        try:
            body = CHUNK_READER.read(data)
        except (UnexpectedShapeError, UnpairedSurrogateError):
            return self._bent(data)
        except InvalidJsonError:
            return StreamEvent(raw=data, fault=malformed_fault("a frame of the stream is no JSON"))
        has_error = body.error is not None and bytes(body.error) not in NO_ERROR
        if has_error or body.object == ERROR_OBJECT:
            return self._in_band(data, document_of(data))
        return event_of(data, body)

    def _bent(self, data: bytes) -> StreamEvent:
        document = document_of(data)
        if not isinstance(document, dict):
            fault = malformed_fault("a frame of the stream is no JSON object")
            return StreamEvent(raw=data, fault=fault)
        if document.get("error") or document.get("object") == ERROR_OBJECT:
            return self._in_band(data, document)
        return event_of(data, bend_chunk(document))

    def _in_band(self, data: bytes, document: Any) -> StreamEvent:
        text = data.decode("utf-8", "replace") if document is UNREAD else "error inside the stream"
        facts = read_error(document) or ErrorFacts(message=text)
        return StreamEvent(raw=data, fault=in_band_fault(facts, document, self._secret))


def event_of(data: bytes, body: ChunkBody) -> StreamEvent:
    """The event of a sound frame."""
    choices = body.choices
    usage = None if body.usage is None else usage_of(body.usage)
    if not choices:
        return StreamEvent(raw=data, usage=usage, usage_only=body.usage is not None)
    if len(choices) == 1:
        only = choices[0]
        delta = only.delta
        if only.finish_reason is None and delta is not None and is_plain(delta) and not only.index:
            # The common frame; the general way below costs twice as much.
            return StreamEvent(
                raw=data,
                text=delta.content or "",
                reasoning=delta.reasoning_content or delta.reasoning or "",
                usage=usage,
                is_plain=True,
            )
    reasons = [choice.finish_reason for choice in choices]
    spoken = [choice.delta for choice in choices if choice.delta is not None]
    if ERROR_OBJECT in reasons:
        fault = Fault(kind=FaultKind.IN_BAND, message="finish reason `error`")
        return StreamEvent(raw=data, fault=fault)
    media = tuple([one for delta in spoken for one in images_of(delta)])
    return StreamEvent(
        raw=data,
        text=joined(map(text_of, spoken)),
        reasoning=joined(map(reasoning_of, spoken)),
        tool_calls=tuple(call for delta in spoken for call in calls_of(delta)),
        finish_reason=first_reason(reasons),
        ended_choices=tuple(
            place if choice.index is None else choice.index
            for place, choice in enumerate(choices)
            if choice.finish_reason
        ),
        usage=usage,
        is_refusal=any(delta.refusal and not delta.content for delta in spoken),
        has_media=bool(media),
        media=media,
        pieces=() if len(choices) == 1 and not choices[0].index else pieces_of(choices),
    )


def pieces_of(choices: Sequence[ChunkChoice]) -> tuple[tuple[int, StreamEvent], ...]:
    """What each choice says; an index that none can have is its place."""
    pieces: list[tuple[int, StreamEvent]] = []
    for place, choice in enumerate(choices):
        given, delta = choice.index, choice.delta or SpokenBody()
        index = given if given is not None and 0 <= given < MAX_CHOICES else place
        piece = StreamEvent(
            text=text_of(delta),
            reasoning=reasoning_of(delta),
            tool_calls=calls_of(delta),
            finish_reason=choice.finish_reason,
            is_refusal=bool(delta.refusal and not delta.content),
            media=images_of(delta),
        )
        pieces.append((index, piece))
    return tuple(pieces)
