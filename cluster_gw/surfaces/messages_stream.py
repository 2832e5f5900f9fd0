"""A stream of the messages API: an upstream's frames passed on, or written anew."""

from collections.abc import Mapping
from typing import Any, Final

from cluster_gw.canonical.events import StreamEvent, Usage
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.chat_stream import extended
from cluster_gw.surfaces.messages_answer import opening_json, says, usage_json, vendor_reason
from cluster_gw.surfaces.messages_blocks import BlockWriter
from cluster_gw.surfaces.messages_errors import messages_error_body
from cluster_gw.surfaces.unsaid import unsaid_comment
from cluster_gw.wire.anthropic_messages import MESSAGE_STOP
from cluster_gw.wire.json_codec import write
from cluster_gw.wire.sse import encode_event

STOP: Final = MESSAGE_STOP.encode()
END: Final = encode_event(STOP, b'{"type":"message_stop"}')


class PassedMessages:
    """Passes frames of the same dialect on; see `surfaces.base.StreamEncoder`."""

    __slots__ = ("_end",)

    def __init__(self) -> None:
        self._end = END

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The frame of one event; that of the end waits for `done`."""
        if event.fault is not None:
            return b""
        if event.done:
            self._end = encode_event(event.name or STOP, event.raw)
            return b""
        payload = extended(event.raw, extensions) if extensions else event.raw
        return b"event: " + event.name + b"\ndata: " + payload + b"\n\n"

    def done(self) -> bytes:
        """The vendor's own end."""
        return self._end

    def error(self, error: ErrorBody, request_id: str) -> bytes:
        """An error event; nothing may follow it."""
        return error_event(error, request_id)


class WrittenMessages:
    """Writes frames for events of another dialect; see `surfaces.base.StreamEncoder`.

    The end of the message tells usage, which other dialects send after the end of the answer, so it
    waits for `done`.
    """

    def __init__(self, head: StreamHead) -> None:
        self._head = head
        self._blocks = BlockWriter(head.id)
        self._has_begun = False
        self._is_refusal = False
        self._reason: str | None = None
        self._stop_sequence: str | None = None
        self._usage: Usage | None = None
        self._extensions: Mapping[str, Any] = {}

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The frames of one event; none for what this dialect has no words for."""
        if event.fault is not None:
            return b""
        if event.usage is not None:
            self._usage = event.usage
        self._reason = self._reason or event.finish_reason
        self._stop_sequence = event.stop_sequence or self._stop_sequence
        self._is_refusal = self._is_refusal or event.is_refusal
        if extensions:
            self._extensions = extensions
        frames = self._blocks.take(event)
        frames = self._begun(frames) if frames else b""
        if event.has_media or event.lost:
            frames += unsaid_comment(event, says)
        return frames

    def done(self) -> bytes:
        """The end of the last block, why the answer ended, usage, and the end."""
        usage = self._usage or Usage(prompt_tokens=self._head.input_tokens)
        frames = self._begun(self._blocks.end())
        ending = {
            "type": "message_delta",
            "delta": {
                "stop_reason": vendor_reason(
                    self._reason,
                    self._stop_sequence,
                    has_calls=self._blocks.has_calls,
                    is_refusal=self._is_refusal,
                ),
                "stop_sequence": self._stop_sequence,
            },
            "usage": usage_json(usage),
            **self._extensions,
        }
        return frames + encode_event(b"message_delta", write(ending)) + END

    def error(self, error: ErrorBody, request_id: str) -> bytes:
        """An error event; nothing may follow it."""
        return error_event(error, request_id)

    def _begun(self, frames: bytes) -> bytes:
        if self._has_begun:
            return frames
        self._has_begun = True
        message = {
            **opening_json(self._head),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_json(Usage(prompt_tokens=self._head.input_tokens)),
        }
        opening = write({"type": "message_start", "message": message})
        return encode_event(b"message_start", opening) + frames


def error_event(error: ErrorBody, request_id: str) -> bytes:
    """The event that ends a broken stream."""
    return encode_event(b"error", messages_error_body(error, request_id))
