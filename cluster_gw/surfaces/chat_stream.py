"""A stream of the chat completions API: an upstream's frames passed on, or written anew."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from cluster_gw.canonical.conversation import Part
from cluster_gw.canonical.events import StreamEvent, ToolCallDelta, Usage
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.chat_answer import images_json, says, signature_json, usage_json
from cluster_gw.surfaces.chat_errors import error_body
from cluster_gw.surfaces.unsaid import unsaid_comment
from cluster_gw.wire.json_codec import (
    InvalidJsonError,
    UnexpectedShapeError,
    raw,
    read_answer_fields,
    write,
)
from cluster_gw.wire.openai_chat import DONE
from cluster_gw.wire.sse import encode_data

USAGE: Final = b'"usage"'
END: Final = encode_data(DONE)


class PassedStream:
    """Passes frames of the same dialect on; see `surfaces.base.StreamEncoder`.

    Args:
        include_usage: the client asked for usage.
    """

    __slots__ = ("_include_usage",)

    def __init__(self, *, include_usage: bool) -> None:
        self._include_usage = include_usage

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The frame of one event."""
        if event.done or event.fault is not None:
            return b""
        payload = event.raw
        if not self._include_usage:
            if event.usage_only:
                return b""
            if USAGE in payload:
                payload = without_usage(payload)
        if extensions:
            payload = extended(payload, extensions)
        return b"data: " + payload + b"\n\n"

    def done(self) -> bytes:
        """The end marker."""
        return END

    def error(self, error: ErrorBody, request_id: str) -> bytes:
        """One data event with the error object; no end marker may follow it."""
        return encode_data(error_body(error, request_id))


class ChunkStream(ABC):
    """Writes frames with choices for events of another dialect; see `surfaces.base.StreamEncoder`.

    Usage goes into a frame of its own before the end marker, where the vendor has it.
    """

    prefix: ClassVar[str]  # of an answer's id
    kind: ClassVar[str]  # what the vendor calls a frame

    def __init__(self, head: StreamHead) -> None:
        self._head = head
        self._usage: Usage | None = None

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The frame of one event; none for what this dialect has no words for."""
        if event.usage is not None:
            self._usage = event.usage
        if event.done or event.fault is not None:
            return b""
        pieces = self._head.pieces_of(event)
        choices = [self._choice(index, piece) for index, piece in pieces]
        said = [choice for choice in choices if choice is not None]
        frame = self._frame(said, extensions) if said else b""
        if event.has_media or event.lost:
            frame += unsaid_comment(event, self._says)
        return frame

    def done(self) -> bytes:
        """Usage where the client asked for it, and the end marker."""
        if not self._head.include_usage or self._usage is None:
            return END
        return self._frame([], {"usage": usage_json(self._usage)}) + END

    def error(self, error: ErrorBody, request_id: str) -> bytes:
        """One data event with the error object; no end marker may follow it."""
        return encode_data(error_body(error, request_id))

    @staticmethod
    @abstractmethod
    def _says(part: Part) -> bool:
        """Whether the format has words for a part."""

    @abstractmethod
    def _choice(self, index: int, piece: StreamEvent) -> dict[str, Any] | None:
        """What one choice says; None for nothing."""

    def _frame(self, choices: list[Any], extensions: Mapping[str, Any] | None) -> bytes:
        head = self._head
        document = {
            "id": f"{self.prefix}-{head.id}",
            "object": self.kind,
            "created": head.created_s,
            "model": head.model,
            "choices": choices,
            **(extensions or {}),
        }
        return encode_data(write(document))


class WrittenStream(ChunkStream):
    """Writes frames of chat; see `ChunkStream`."""

    prefix = "chatcmpl"
    kind = "chat.completion.chunk"

    def __init__(self, head: StreamHead) -> None:
        super().__init__(head)
        self._begun: set[int] = set()

    @staticmethod
    def _says(part: Part) -> bool:
        return says(part)

    def _choice(self, index: int, piece: StreamEvent) -> dict[str, Any] | None:
        delta = delta_of(piece)
        if not (delta or piece.finish_reason):
            return None
        if index not in self._begun:
            self._begun.add(index)
            delta = {"role": "assistant", "content": "", **delta}
        return {"index": index, "delta": delta, "finish_reason": piece.finish_reason}


def delta_of(event: StreamEvent) -> dict[str, Any]:
    """What an event adds to the message."""
    delta: dict[str, Any] = {}
    if event.text:
        delta["refusal" if event.is_refusal else "content"] = event.text
    if event.reasoning:
        delta["reasoning_content"] = event.reasoning
    if event.media and (images := images_json(event.media)):
        delta["images"] = images
    if event.tool_calls:
        delta["tool_calls"] = [call_json(call) for call in event.tool_calls]
    return delta


def call_json(call: ToolCallDelta) -> dict[str, Any]:
    """One fragment of a call: its id and name come with the first."""
    function: dict[str, Any] = {"arguments": call.arguments}
    if call.name is None:
        return {"index": call.index, "function": function}
    return {
        "index": call.index,
        "id": call.id or f"call_{call.index}",
        "type": "function",
        "function": {"name": call.name, **function},
        **signature_json(call.signature),
    }


def without_usage(payload: bytes) -> bytes:
    """The frame without its top-level `usage`; a nested one is none of ours."""
    try:
        fields = read_answer_fields(payload)
    except (InvalidJsonError, UnexpectedShapeError):
        return payload
    if fields.pop("usage", None) is None:
        return payload
    return write(fields)


def extended(payload: bytes, extensions: Mapping[str, Any]) -> bytes:
    """The document with members of the gateway's own; existing members win."""
    try:
        fields = read_answer_fields(payload)
    except (InvalidJsonError, UnexpectedShapeError):
        return payload
    for name, value in extensions.items():
        fields.setdefault(name, raw(value))
    return write(fields)
