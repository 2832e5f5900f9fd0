"""Decodes a stream of Gemini's dialect: one event per frame, each frame read exactly once.

There is no end marker: a candidate ends with its finish reason, and the stream with its connection
when every candidate that began has ended.
"""

import itertools
from typing import Final

import msgspec

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta, Usage
from cluster_gw.providers.framed_stream import LIFE_EVENTS, LONGEST_END, FramedStreamDecoder
from cluster_gw.providers.gemini_facts import (
    BLOCKED,
    broken_fault,
    calls_of,
    document_of,
    failure_of,
    has_error,
    has_media,
    is_blocked,
    is_spoken,
    lost_of,
    media_of,
    parts_of,
    read_body,
    reason_of,
    text_of,
    thoughts_of,
    usage_of,
)
from cluster_gw.providers.openai_errors import document_of as any_document
from cluster_gw.providers.openai_errors import in_band_fault
from cluster_gw.wire.error_body import ErrorFacts, read_error
from cluster_gw.wire.gemini import MAX_CANDIDATES, SIGNED, AnswerBody, SpokenPart
from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError
from cluster_gw.wire.openai_chat import DONE
from cluster_gw.wire.sse import SseFrame

ERROR_EVENT: Final = b"error"
END: Final = StreamEvent(done=True)
Share = tuple[int, list[SpokenPart], str | None]  # of a frame: index, parts, finish reason


class GeminiStreamDecoder(FramedStreamDecoder):
    """Turns the bytes of one stream into events; see `providers.base.StreamDecoder`.

    Args:
        secret: credential of the call, for redaction.
    """

    def __init__(self, secret: str | None) -> None:
        super().__init__(secret)
        self._is_blocked = False
        self._numbers = itertools.count(1)
        self._begun: set[int] = set()
        self._ended: set[int] = set()
        self._speakers: set[int] = set()
        self._callers: set[int] = set()
        self._call_counts: dict[int, int] = {}
        self._usage: Usage | None = None

    def _take(self, frame: SseFrame, events: list[StreamEvent]) -> None:
        data = frame.data
        if not data or (frame.event is not None and frame.event in LIFE_EVENTS):
            self._pings += 1
            return
        event = self._event(data, is_error=frame.event == ERROR_EVENT)
        events.append(event)
        if self._is_blocked:  # nothing of any candidate can follow
            events.append(END)
        self._is_over = self._is_blocked or event.done or event.fault is not None

    def _closing(self) -> list[StreamEvent]:
        """The end, where every candidate that began has ended."""
        return [END] if self._begun and self._begun == self._ended else []

    def _event(self, data: bytes, *, is_error: bool) -> StreamEvent:
        if len(data) < LONGEST_END and data.strip() == DONE:  # of relays that know one dialect
            return END
        if is_error:
            return self._in_band(data, any_document(data))
        try:
            body = read_body(data)
        except (InvalidJsonError, UnexpectedShapeError) as error:
            document = any_document(data)
            if isinstance(document, list | dict) and read_error(document) is not None:
                return self._in_band(data, document)
            return StreamEvent(raw=data, fault=broken_fault(error, "a frame of the stream"))
        if has_error(body):
            return self._in_band(data, document_of(body))
        return self._sound(data, body)

    def _sound(self, data: bytes, body: AnswerBody) -> StreamEvent:
        usage = usage_of(body.usage_metadata, self._usage)
        self._usage = usage or self._usage
        if is_blocked(body):
            self._is_blocked = True
            return StreamEvent(raw=data, finish_reason=BLOCKED, ended_choices=(0,), usage=usage)
        candidates = body.candidates or []
        if not candidates:
            return StreamEvent(raw=data, usage=usage, usage_only=usage is not None)
        parts: list[SpokenPart] = []
        reasons: list[str] = []
        ended: list[int] = []
        shares: list[Share] = []
        for place, candidate in enumerate(candidates):
            given = candidate.index
            index = given if given is not None and 0 <= given < MAX_CANDIDATES else place
            self._begun.add(index)
            own = parts_of(candidate)
            parts += own
            if any(map(is_spoken, own)):
                self._speakers.add(index)
            if any(part.function_call is not None for part in own):
                self._callers.add(index)
            fault = failure_of(candidate, self._secret)
            if fault is not None and index not in self._speakers:
                return StreamEvent(raw=data, usage=usage, fault=fault)
            reason = reason_of(candidate, has_calls=index in self._callers)
            shares.append((index, own, reason))
            if reason is not None:
                reasons.append(reason)
                ended.append(index)
                self._ended.add(index)
        event = StreamEvent(
            raw=data,
            text=text_of(parts),
            reasoning=thoughts_of(parts),
            usage=usage,
            is_plain=True,
        )
        is_alone = len(shares) == 1 and not shares[0][0]
        lost = self._newly_lost(*[name for one in candidates for name in lost_of(one)])
        if is_alone and not ended and not lost and all(map(is_words, parts)):
            return event  # the common frame
        calls = calls_of(parts, self._numbers)
        pieces = self._pieces(shares, calls)
        return msgspec.structs.replace(
            event,
            tool_calls=pieces[0][1].tool_calls if is_alone else calls,
            pieces=() if is_alone else pieces,
            lost=lost,
            finish_reason=reasons[0] if reasons else None,
            ended_choices=tuple(ended),
            signature=proof_of(parts),
            has_media=has_media(parts),
            media=media_of(parts),
            # Code that the vendor runs, and what comes next: the model is at work.
            is_structure=any(part.text is None and not is_spoken(part) for part in parts),
            is_plain=False,
        )

    def _pieces(
        self, shares: list[Share], calls: tuple[ToolCallDelta, ...]
    ) -> tuple[tuple[int, StreamEvent], ...]:
        """What each candidate says; its calls are numbered by themselves."""
        rest = iter(calls)
        pieces: list[tuple[int, StreamEvent]] = []
        for index, parts, reason in shares:
            count = sum(part.function_call is not None for part in parts)
            first = self._call_counts.get(index, 0)
            self._call_counts[index] = first + count
            piece = StreamEvent(
                text=text_of(parts),
                reasoning=thoughts_of(parts),
                tool_calls=tuple(
                    [
                        msgspec.structs.replace(call, index=first + place)
                        for place, call in enumerate(itertools.islice(rest, count))
                    ]
                ),
                finish_reason=reason,
                signature=proof_of(parts),
                has_media=has_media(parts),
                media=media_of(parts),
            )
            pieces.append((index, piece))
        return tuple(pieces)

    def _in_band(self, data: bytes, document: object) -> StreamEvent:
        facts = read_error(document) or ErrorFacts(message="error inside the stream")
        return StreamEvent(raw=data, fault=in_band_fault(facts, document, self._secret))


def is_words(part: SpokenPart) -> bool:
    """Whether a part is text or a thought, and nothing else."""
    return part.text is not None and not part.thought_signature


def proof_of(parts: list[SpokenPart]) -> str:
    """The signature of a thought, with the mark of its vendor."""
    given = [part.thought_signature for part in parts if part.thought and part.thought_signature]
    return SIGNED + given[-1] if given else ""
