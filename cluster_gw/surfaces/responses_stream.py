"""A stream of the Responses API whose events the upstream wrote itself."""

from collections.abc import Mapping
from typing import Any

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.chat_errors import error_json
from cluster_gw.surfaces.chat_stream import extended
from cluster_gw.wire.json_codec import write
from cluster_gw.wire.sse import encode_data, encode_event


class PassedStream:
    """Passes events of the same dialect on; see `surfaces.base.StreamEncoder`.

    The event that ends an answer is one of them, so nothing is left to say at the end.
    """

    __slots__ = ("_passed_count",)

    def __init__(self) -> None:
        self._passed_count = 0

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The frame of one event."""
        payload = event.raw
        if event.fault is not None or not payload:
            return b""
        self._passed_count += 1
        if extensions:
            payload = extended(payload, extensions)
        return frame(event.name, payload)

    def done(self) -> bytes:
        """Nothing."""
        return b""

    def error(self, error: ErrorBody, request_id: str) -> bytes:
        """One `error` event; nothing may follow it."""
        return error_event(error, request_id, self._passed_count)


def frame(name: bytes, payload: bytes) -> bytes:
    """One event of one data line, with its name where it has one."""
    return encode_event(name, payload) if name else encode_data(payload)


def error_event(error: ErrorBody, request_id: str, sequence_number: int | None) -> bytes:
    """The event that ends a broken stream.

    The vendor documents flat members; its SDK raises what stands in `error`.

    Args:
        error: what broke it.
        request_id: to find it by.
        sequence_number: None when nobody knows how far the stream got.
    """
    document: dict[str, Any] = {
        "type": "error",
        "code": error.code,
        "message": error.message,
        "param": error.param,
    }
    if sequence_number is not None:
        document["sequence_number"] = sequence_number
    document["error"] = error_json(error, request_id)
    return frame(b"error", write(document))
