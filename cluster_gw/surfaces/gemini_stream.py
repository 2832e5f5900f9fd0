"""A stream of generateContent: an upstream's frames passed on, or written anew.

Frames come as server-sent events, or as the items of one JSON array to a client that did not ask
for events. There is no end marker: a good stream ends with the frame that has a finish reason.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from cluster_gw.canonical.conversation import Media, ToolUse
from cluster_gw.canonical.events import StreamEvent, ToolCallDelta, Usage
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.chat_stream import extended
from cluster_gw.surfaces.gemini_answer import (
    MALFORMED,
    call_json,
    candidate_json,
    finish_reason,
    media_json,
    response_json,
    thought_json,
)
from cluster_gw.surfaces.gemini_errors import error_body
from cluster_gw.surfaces.unsaid import unsaid_comment
from cluster_gw.wire.json_codec import write
from cluster_gw.wire.sse import encode_comment, encode_data

MAX_KEPT: Final = 4 * 1_048_576  # characters of calls that wait for their ends
CALL_OVERHEAD: Final = 128


class Framing(Protocol):
    """How the frames of one stream are told apart."""

    @property
    def keepalive(self) -> bytes:
        """Bytes that clients ignore."""

    def frame(self, payload: bytes) -> bytes:
        """The bytes of one frame."""

    def comment(self, event: StreamEvent) -> bytes:
        """What names the loss of an event; nothing where the frames leave no room for it."""

    def end(self) -> bytes:
        """What follows the last frame."""


class EventFraming:
    """Server-sent events."""

    keepalive = encode_comment(b"keep-alive")

    def frame(self, payload: bytes) -> bytes:
        """One event."""
        return encode_data(payload)

    def comment(self, event: StreamEvent) -> bytes:
        """Comment lines."""
        return unsaid_comment(event, lambda part: isinstance(part, Media))

    def end(self) -> bytes:
        """Nothing: the connection says it."""
        return b""


class ArrayFraming:
    """The items of one JSON array."""

    keepalive = b"\n"

    def __init__(self) -> None:
        self._before = b"["

    def frame(self, payload: bytes) -> bytes:
        """One item, with what stands before it."""
        before, self._before = self._before, b",\n"
        return before + payload

    def comment(self, event: StreamEvent) -> bytes:  # noqa: ARG002 - JSON has no comments
        """Nothing."""
        return b""

    def end(self) -> bytes:
        """The end of the array, which may have stayed empty."""
        return b"[]" if self._before == b"[" else b"]"


class PassedStream:
    """Passes frames of the same dialect on; see `surfaces.base.StreamEncoder`."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The frame of one event."""
        if event.fault is not None or not event.raw:
            return b""
        payload = extended(event.raw, extensions) if extensions else event.raw
        # An event of several lines is sound in its dialect, but would break our framing.
        return self._framing.frame(payload.replace(b"\n", b" "))

    def done(self) -> bytes:
        """The end of the framing."""
        return self._framing.end()

    def error(self, error: ErrorBody, request_id: str) -> bytes:
        """One frame with the error object; nothing may follow it."""
        return self._framing.frame(error_body(error, request_id)) + self._framing.end()


class OpenCall(msgspec.Struct, gc=False):
    """A call that may go on; its arguments in the pieces they came in."""

    id: str = ""
    name: str = ""
    signature: str = ""
    pieces: list[str] = []

    @property
    def whole(self) -> ToolUse:
        """The call, ended."""
        arguments = "".join(self.pieces)
        return ToolUse(id=self.id, name=self.name, arguments=arguments, signature=self.signature)


class Room(msgspec.Struct, gc=False):
    """What all candidates of a stream keep together."""

    kept: int = 0


class WrittenCandidate:
    """One candidate of a written stream.

    A call goes out whole, as the vendor has it, so its fragments wait until something else follows.
    """

    def __init__(self, room: Room) -> None:
        self._room = room
        self._calls: dict[int, OpenCall] = {}
        self._kept = 0
        self._is_broken = False
        self._reason: str | None = None

    def take(self, event: StreamEvent) -> list[dict[str, Any]]:
        """The parts of one event; none for what waits and for what has no words."""
        if event.finish_reason:
            self._reason = event.finish_reason
        parts: list[dict[str, Any]] = []
        proof = "" if event.is_redacted else event.signature
        thought = thought_json(event.reasoning, proof)
        if thought is not None:
            parts += [*self._whole_calls(), thought]
        if event.text:
            parts += [*self._whole_calls(), {"text": event.text}]
        if event.media:
            parts += [*self._whole_calls(), *map(media_json, event.media)]
        for delta in event.tool_calls:
            if self._begins(delta):
                parts += self._whole_calls()
            self._take(delta)
        return parts

    def end(self, index: int) -> dict[str, Any]:
        """The end of it, with the calls that waited."""
        parts = self._whole_calls() or [{"text": ""}]
        reason = MALFORMED if self._is_broken else finish_reason(self._reason)
        return candidate_json(index, parts, reason)

    def _begins(self, delta: ToolCallDelta) -> bool:
        """Whether a fragment is the first of a call; some vendors number every call 0."""
        known = self._calls.get(delta.index)
        if known is None:
            return False
        return bool(delta.id and known.id and delta.id != known.id)

    def _take(self, delta: ToolCallDelta) -> None:
        size = len(delta.arguments) + CALL_OVERHEAD
        self._keep(size)
        if self._room.kept > MAX_KEPT:  # nobody calls like that; what is kept must have a bound
            self._calls.clear()
            self._keep(-self._kept)
            self._is_broken = True
            return
        call = self._calls.setdefault(delta.index, OpenCall())
        call.id = call.id or delta.id or ""
        call.name = call.name or delta.name or ""
        call.signature = call.signature or delta.signature
        call.pieces.append(delta.arguments)

    def _keep(self, size: int) -> None:
        self._kept += size
        self._room.kept += size

    def _whole_calls(self) -> list[dict[str, Any]]:
        """The calls that waited, as parts; one whose arguments are no object is left out."""
        if not self._calls:
            return []
        calls, self._calls = self._calls, {}
        self._keep(-self._kept)
        found = [call_json(calls[index].whole) for index in sorted(calls)]
        self._is_broken = self._is_broken or None in found
        return [part for part in found if part is not None]


class WrittenStream:
    """Writes frames for events of another dialect; see `surfaces.base.StreamEncoder`.

    The last frame waits for the end, because it has finish reasons and usage in it.
    """

    def __init__(self, head: StreamHead, framing: Framing) -> None:
        self._head = head
        self._framing = framing
        self._room = Room()
        self._candidates = {0: WrittenCandidate(self._room)}
        self._usage: Usage | None = None
        self._extensions: Mapping[str, Any] = {}

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The frame of one event; none for what this dialect has no words for."""
        if event.usage is not None:
            self._usage = event.usage
        if event.fault is not None:
            return b""
        if extensions:
            self._extensions = extensions
        said: list[dict[str, Any]] = []
        for index, piece in self._head.pieces_of(event):
            if index not in self._candidates:
                self._candidates[index] = WrittenCandidate(self._room)
            parts = self._candidates[index].take(piece)
            if parts:
                said.append(candidate_json(index, parts))
        frame = self._frame(said) if said else b""
        return frame + self._framing.comment(event) if event.lost else frame

    def done(self) -> bytes:
        """The frame that ends the answer, and the end of the framing."""
        ends = [self._candidates[index].end(index) for index in sorted(self._candidates)]
        return self._frame(ends, self._usage, self._extensions) + self._framing.end()

    def error(self, error: ErrorBody, request_id: str) -> bytes:
        """One frame with the error object; nothing may follow it."""
        return self._framing.frame(error_body(error, request_id)) + self._framing.end()

    def _frame(
        self,
        candidates: list[dict[str, Any]],
        usage: Usage | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> bytes:
        document = {**response_json(candidates, usage, self._head), **(extensions or {})}
        return self._framing.frame(write(document))
