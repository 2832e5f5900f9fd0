"""A stream whose source dies in the middle, and goes on from another: no client gets a mix.

What the client was told is known. Another answer goes on where that ends, if it begins with the
very same words; else the stream ends with an error.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

import msgspec

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.errors import ErrorBody
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.reply import Reply
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.translation import stream_encoder
from cluster_gw.providers.base import Provider, RewritingProvider
from cluster_gw.surfaces.base import StreamEncoder


class OtherAnswerError(Exception):
    """Another answer does not go on where the first one ended."""


class Said:
    """What a client was told of an answer.

    Args:
        encoder: told it.
        is_native: as frames of the upstream's.

    Attributes:
        encoder: likewise.
        is_native: likewise.
        is_plain: nothing but text and reasoning.
    """

    def __init__(self, encoder: StreamEncoder, *, is_native: bool) -> None:
        self.encoder = encoder
        self.is_native = is_native
        self.is_plain = True
        self._text: list[str] = []
        self._reasoning: list[str] = []

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """All of it."""
        return "".join(self._reasoning)

    def add(self, event: StreamEvent) -> None:
        """More was told."""
        if event.text:
            self._text.append(event.text)
        if event.reasoning:
            self._reasoning.append(event.reasoning)
        self.is_plain = self.is_plain and not is_rich(event)


def is_rich(event: StreamEvent) -> bool:
    """Whether an event says more than words."""
    return bool(
        event.tool_calls
        or event.finish_reason
        or event.has_media
        or event.pieces
        or event.signature
    )


class NotingEncoder:
    """Notes what another tells; see `surfaces.base.StreamEncoder`."""

    def __init__(self, said: Said) -> None:
        self._said = said

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The bytes of one event."""
        self._said.add(event)
        return self._said.encoder.encode(event, extensions)

    def done(self) -> bytes:
        """The bytes that end a good stream."""
        return self._said.encoder.done()

    def error(self, error: ErrorBody, request_id: str) -> bytes:
        """What ends a broken one."""
        return self._said.encoder.error(error, request_id)


class GoingOn(NotingEncoder):
    """Leaves out what was told already.

    Args:
        said: that.
        codec: rewrites the frame in which it ends; None where frames are written anew.
    """

    def __init__(self, said: Said, codec: RewritingProvider | None) -> None:
        super().__init__(said)
        self._codec = codec
        self._text, self._reasoning = said.text, said.reasoning

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The bytes of what is new in one event.

        Raises:
            OtherAnswerError: it is another answer.
        """
        if not (self._text or self._reasoning):
            return super().encode(event, extensions)
        self._reasoning, reasoning = beyond(self._reasoning, event.reasoning)
        self._text, text = beyond(self._text, event.text)
        rest = msgspec.structs.replace(event, reasoning=reasoning, text=text)
        is_behind = bool(self._text or self._reasoning)
        if is_behind and (is_rich(event) or rest.text or rest.reasoning):
            raise OtherAnswerError
        if not (rest.text or rest.reasoning or is_rich(event)):
            return b""
        if self._codec is not None and event.raw:
            rest = msgspec.structs.replace(rest, raw=self._codec.reframed(event.raw, rest))
        return super().encode(rest, extensions)

    def done(self) -> bytes:
        """The bytes that end a good stream.

        Raises:
            OtherAnswerError: it ended before it had said what was told.
        """
        if self._text or self._reasoning:
            raise OtherAnswerError
        return super().done()


def beyond(told: str, text: str) -> tuple[str, str]:
    """What of a text that was told is still to come again, and what is new.

    Raises:
        OtherAnswerError: neither begins with the other.
    """
    length = min(len(told), len(text))
    if told[:length] != text[:length]:
        raise OtherAnswerError
    return told[length:], text[length:]


class ContinuedReply(Reply):
    """The client's end of a stream that has begun before; headers are history."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(self._again, reply.piece_now)
        self._reply = reply

    async def _again(self, _message: object) -> None:
        """What comes again is not sent."""
        await asyncio.sleep(0)

    def piece(self, body: bytes) -> Awaitable[None]:
        """Send a part of the stream."""
        return self._reply.piece(body)

    def end(self, body: bytes = b"") -> Awaitable[None]:
        """Send the last part of the stream."""
        self.is_done = True
        return self._reply.end(body)


class Audience:
    """A client who is told an answer from one source or, one after the other, several.

    Args:
        reply: its end.

    Attributes:
        reply: likewise.
        said: what it was told of a stream that may be gone on with; None where nothing was.
    """

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.said: Said | None = None

    @property
    def has_begun(self) -> bool:
        """Whether it was told anything."""
        return self.reply.status != 0

    def next_reply(self) -> Reply:
        """Where the next source speaks to."""
        return ContinuedReply(self.reply) if self.has_begun else self.reply

    def encoder_of(
        self, exchange: Exchange, target: Target, created_s: int, *, anew: bool = False
    ) -> StreamEncoder:
        """What writes the stream of the next source.

        Raises:
            OtherAnswerError: it cannot go on with what was told.
        """
        is_native = exchange.request.dialect is target.dialect and not anew
        encoder = stream_encoder(exchange, target, created_s, anew=anew)
        said = self.said
        if not self.has_begun or said is None:
            self.said = Said(encoder, is_native=is_native)
            return NotingEncoder(self.said)
        codec = rewriting(target.codec) if is_native else None
        if not said.is_plain or said.is_native is not is_native or (is_native and codec is None):
            raise OtherAnswerError
        return GoingOn(said, codec)

    def last_words(self, exchange: Exchange, error: ErrorBody) -> bytes:
        """What ends a stream that nobody goes on with."""
        if self.said is None:
            return exchange.surface.encode_stream_error(error, exchange.id)
        return self.said.encoder.error(error, exchange.id)


def rewriting(codec: Provider) -> RewritingProvider | None:
    """The codec, if it can say other words in a frame."""
    return codec if isinstance(codec, RewritingProvider) else None
