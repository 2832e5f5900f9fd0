"""What a client-facing codec does; one class per API implements it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation
from cluster_gw.canonical.events import Completion, StreamEvent, Usage
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.errors import ErrorBody


class StreamHead(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an answer says of itself.

    Attributes:
        id: of the request, 32 hex characters; answers that are written anew carry it.
        model: as the client asked for it, or the route that serves where it asked for none.
        created_s: seconds since the epoch.
        include_usage: the client asked for usage.
        is_native: events come in this surface's own dialect, and their bytes are passed on.
        input_tokens: estimated; for dialects that say it before the upstream does.
        request: what is answered, for dialects whose answers say parts of it again.
    """

    id: str
    model: str
    created_s: int
    include_usage: bool = False
    is_native: bool = True
    input_tokens: int = 0
    request: ChatRequest | None = None

    def pieces_of(self, event: StreamEvent) -> tuple[tuple[int, StreamEvent], ...]:
        """What each choice says in an event, by its index.

        Where one was asked for all is said by the first, however the upstream numbers it.
        """
        if event.pieces and (self.request is None or self.request.choices > 1):
            return event.pieces
        return ((0, event),)


class StreamEncoder(Protocol):
    """Writes one stream. Any run of events gives a sound stream of the dialect."""

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The bytes of one event for the client; empty when the client must not see it.

        The end marker gives no bytes here: a stream that ended well is closed by `done`.

        Args:
            event: what the upstream said; one with a fault gives no bytes.
            extensions: members of the gateway's own to add to this frame.
        """

    def done(self) -> bytes:
        """The bytes that end a good stream."""

    def error(self, error: ErrorBody, request_id: str) -> bytes:
        """What ends a stream broken after commit; nothing may follow it."""


class Surface(Protocol):
    """The codec of one client API."""

    @property
    def kind(self) -> str:
        """What this API is called where kept answers of several are told apart."""

    @property
    def dialect(self) -> Dialect:
        """The wire format clients of this surface speak."""

    def decode_request(self, body: bytes) -> ChatRequest | ErrorBody:
        """A request in the internal language, or the error object that names what is wrong."""

    def read_conversation(self, request: ChatRequest) -> Conversation:
        """The whole of a request that goes to an upstream of another dialect.

        Args:
            request: made by `decode_request`, so its members have the shapes that checks; what no
                check has seen may have any shape, and is lost rather than guessed.

        Raises:
            UnexpectedShapeError: a member that cannot be left out has another shape; by path.
        """

    def stream_encoder(self, head: StreamHead) -> StreamEncoder:
        """What writes one stream for the client."""

    def encode_keepalive(self) -> bytes:
        """Bytes that clients ignore, to keep an idle connection open."""

    def status_of(self, error: ErrorBody) -> int:
        """The status of an error answer, in the numbers this dialect has."""

    def encode_error(self, error: ErrorBody, request_id: str) -> bytes:
        """The body of an error answer."""

    def encode_stream_error(self, error: ErrorBody, request_id: str) -> bytes:
        """What ends a stream of which nobody knows how far it got; see `StreamEncoder.error`."""

    def unsaid(self, answer: Answer) -> tuple[str, ...]:
        """What of an answer of another dialect this one has no words for, by name."""

    def encode_completion(
        self, completion: Completion, extensions: Mapping[str, Any] | None = None
    ) -> bytes:
        """The body of a buffered answer, untouched unless there is something to add."""

    def encode_answer(
        self, answer: Answer, head: StreamHead, extensions: Mapping[str, Any] | None = None
    ) -> bytes:
        """The body of a buffered answer that came in another dialect."""


@runtime_checkable
class VectorSurface(Protocol):
    """What the codec of an API for embeddings does besides."""

    def encode_vectors(self, items: Sequence[msgspec.Raw], model: str, usage: Usage) -> bytes:
        """The body of an answer that no upstream wrote as it is wanted.

        Args:
            items: vectors in the order of their inputs, encoded as they were asked for.
            model: as the upstream calls it.
            usage: reported, or estimated.
        """
