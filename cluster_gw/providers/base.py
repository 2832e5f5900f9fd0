"""What an upstream-facing codec does; one class per dialect implements it.

Codecs translate and never decide: they produce events and faults, `core/outcome` judges them.
"""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation, Translated
from cluster_gw.canonical.events import Completion, StreamEvent
from cluster_gw.canonical.failure import Fault
from cluster_gw.canonical.quota import Observation
from cluster_gw.canonical.request import ChatRequest, Dialect


class StreamDecoder(Protocol):
    """Turns the bytes of one stream into events; any split of the bytes gives the same events."""

    @property
    def signs_of_life(self) -> int:
        """Comments and other lines that carry no event, counted since the start."""

    def decode(self, chunk: bytes) -> list[StreamEvent]:
        """Take the next bytes and give the events completed by them.

        A malformed frame gives an event with a fault. After `done` or a fault nothing follows.
        """

    def flush(self) -> list[StreamEvent]:
        """Take the clean end of the stream; a frame without its last blank line still counts.

        A stream that neither was `done` nor finished a choice gives no terminal event here: the
        caller sees none and knows that the answer was cut.
        """


@runtime_checkable
class NotingProvider(Protocol):
    """A codec that may lose or change something of a request of its own dialect, and says so."""

    @property
    def has_notes(self) -> bool:
        """Whether it ever does."""

    def encode_noted(self, request: ChatRequest, model: str) -> Translated:
        """The same as `encode_request`, and what a client should know of it."""


@runtime_checkable
class RewritingProvider(Protocol):
    """A codec that can say other words in frames and bodies of its dialect, and keep the rest."""

    def reframed(self, frame: bytes, event: StreamEvent) -> bytes:
        """A frame with text, reasoning, calls and finish reason of an event, all else kept."""

    def narrowed(self, frame: bytes, place: int, index: int, *, has_usage: bool) -> bytes:
        """A frame of several answers with one of them alone.

        Args:
            frame: of the stream.
            place: of the answer among those of the frame.
            index: of the answer.
            has_usage: whether usage stays.
        """

    def rebodied(self, completion: Completion, before: Answer, after: Answer) -> Completion:
        """A buffered answer whose body says `after` where that differs from `before`."""

    def failed_generation(self, body: bytes) -> str:
        """The text of a call that the provider could not read, out of its error; else empty."""


@runtime_checkable
class TrimmingProvider(Protocol):
    """A codec that can say less in a frame of its dialect."""

    def trimmed(self, frame: bytes, event: StreamEvent) -> bytes | None:
        """A frame that says what is left of it; None for one that cannot.

        Args:
            frame: of a stream.
            event: the end of what it says: words, or arguments of calls.
        """


@runtime_checkable
class ReformingProvider(Protocol):
    """A codec that can tell a whole answer as a stream, and the reverse, if nothing gets lost.

    Attributes:
        tells_whole: it knows how to tell a whole answer as a stream; all know the reverse.
    """

    tells_whole: bool

    def as_stream(self, body: bytes) -> bytes | None:
        """The stream of a whole answer; None where there is none."""

    def as_whole(self, stream: bytes) -> bytes | None:
        """The whole answer that a stream tells; None where it does not tell all of one."""


class Provider(Protocol):
    """The codec of one upstream dialect with the quirks of one provider.

    `secret` arguments serve redaction only: whatever an upstream echoes back is struck out.
    """

    @property
    def dialect(self) -> Dialect:
        """The wire format this codec speaks; `encode_request` takes requests in it only."""

    def url(self, base_url: str, model: str) -> str:
        """The full URL of a generation call with a buffered answer."""

    def stream_url(self, base_url: str, model: str) -> str:
        """The full URL of a streamed one; most dialects have one for both."""

    def check_url(self, base_url: str) -> str | None:
        """The URL of a GET that costs nothing and needs the credential; None without one."""

    def request_headers(self, secret: str | None) -> tuple[tuple[str, str], ...]:
        """Headers of a call, lower case; no credential header without a secret."""

    def encode_request(self, request: ChatRequest, model: str) -> bytes:
        """The upstream's body: the client's own members with only what must change changed."""

    def encode_conversation(self, conversation: Conversation, model: str) -> Translated:
        """The upstream's body for a request that came in another dialect, and what it lost."""

    def stream_decoder(self, secret: str | None = None) -> StreamDecoder:
        """A fresh decoder for one stream."""

    def is_stream(self, content_type: str) -> bool:
        """Whether a 200 with this content type (may be empty) is worth decoding as a stream."""

    def decode_not_stream(self, body: bytes, content_type: str, secret: str | None = None) -> Fault:
        """The fault of a 200 that answered a streaming request with something else."""

    def decode_completion(
        self, body: bytes, content_type: str, secret: str | None = None
    ) -> Completion | Fault:
        """A buffered 200 as a completion, or the fault it is in truth."""

    def read_answer(self, completion: Completion) -> Answer:
        """The whole of a buffered answer, for a client of another dialect.

        Args:
            completion: made by `decode_completion`.
        """

    def read_quota(self, headers: Mapping[str, str], now_ms: int) -> tuple[Observation, ...]:
        """What an answer states about the provider's limits; see `quota_headers`."""

    def decode_error(
        self,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        now_ms: int,
        secret: str | None = None,
    ) -> Fault:
        """An answer with an error status as a fault.

        Args:
            status: 300..599.
            headers: names in lower case.
            body: decoded body, may be cut short or empty.
            now_ms: ms since the epoch, for dates in `retry-after`.
            secret: credential of the call.
        """
