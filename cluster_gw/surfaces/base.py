"""What a client-facing codec does; one class per API implements it."""

from collections.abc import Mapping
from typing import Any, Protocol

from cluster_gw.canonical.events import Completion, StreamEvent
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.errors import ErrorBody


class Surface(Protocol):
    """The codec of one client API."""

    @property
    def dialect(self) -> Dialect:
        """The wire format clients of this surface speak."""

    def decode_request(self, body: bytes) -> ChatRequest | ErrorBody:
        """A request in the internal language, or the error object that names what is wrong."""

    def encode_event(
        self,
        event: StreamEvent,
        *,
        include_usage: bool,
        extensions: Mapping[str, Any] | None = None,
    ) -> bytes:
        """The bytes of one event for the client; empty when the client must not see it.

        The end marker gives no bytes here: a stream that ended well is closed by `encode_done`.

        Args:
            event: what the upstream said.
            include_usage: the client asked for usage.
            extensions: members of the gateway's own to add to this frame.
        """

    def encode_done(self) -> bytes:
        """The bytes that end a good stream."""

    def encode_keepalive(self) -> bytes:
        """Bytes that clients ignore, to keep an idle connection open."""

    def encode_error(self, error: ErrorBody, request_id: str) -> bytes:
        """The body of an error answer."""

    def encode_stream_error(self, error: ErrorBody, request_id: str) -> bytes:
        """The one event that ends a stream broken after commit; nothing may follow it."""

    def encode_completion(
        self, completion: Completion, extensions: Mapping[str, Any] | None = None
    ) -> bytes:
        """The body of a buffered answer, untouched unless there is something to add."""
