"""A stream whose source dies in the middle, and goes on from another: no client gets a mix.

What the client was told is known. Another answer goes on where that ends, if it begins with the
very same words, calls and frames; else the stream ends with an error.
"""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.errors import ErrorBody
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.reply import Reply
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.translation import stream_encoder
from cluster_gw.providers.base import Provider, TrimmingProvider
from cluster_gw.surfaces.base import StreamEncoder


class OtherAnswerError(Exception):
    """Another answer does not go on where the first one ended."""


class Kind(StrEnum):
    """What a part of an answer is."""

    FRAME = "frame"
    THOUGHT = "thought"
    TEXT = "text"
    CALL = "call"
    ARGUMENTS = "arguments"


GROWING: Final = frozenset({Kind.THOUGHT, Kind.TEXT, Kind.ARGUMENTS})
"""What comes in pieces that each answer cuts as it likes."""


class Part(NamedTuple):
    """What an event says, or a part of that.

    Attributes:
        kind: of it.
        place: of which call, frame or kind of text; parts of one place that follow each other are
            one.
        words: all of it.
    """

    kind: Kind
    place: int | bytes
    words: str


def parts_of(event: StreamEvent, *, is_native: bool) -> Iterator[Part]:
    """What an event says, in order; of frames only where the client gets those of the upstream."""
    if is_native and event.is_structure:
        yield Part(Kind.FRAME, event.name, "")
    if event.reasoning:
        yield Part(Kind.THOUGHT, 0, event.reasoning)
    if event.text:
        yield Part(Kind.TEXT, int(event.is_refusal), event.text)
    for call in event.tool_calls:
        if call.id is not None or call.name is not None:
            yield Part(Kind.CALL, call.index, call.name or "")
        if call.arguments:
            yield Part(Kind.ARGUMENTS, call.index, call.arguments)


def is_rich(event: StreamEvent) -> bool:
    """Whether an event says what nobody here can compare."""
    return bool(
        event.finish_reason
        or event.has_media
        or event.pieces
        or event.signature
        or event.lost
        or event.unsaid
    )


class Said:
    """What a client was told of an answer.

    Args:
        encoder: told it.
        is_native: as frames of the upstream's.

    Attributes:
        encoder: likewise.
        is_native: likewise.
        is_plain: nothing that cannot be compared.
    """

    def __init__(self, encoder: StreamEncoder, *, is_native: bool) -> None:
        self.encoder = encoder
        self.is_native = is_native
        self.is_plain = True
        self._parts: list[tuple[Kind, int | bytes, list[str]]] = []

    @property
    def parts(self) -> list[Part]:
        """All of it."""
        return [Part(kind, place, "".join(words)) for kind, place, words in self._parts]

    def add(self, event: StreamEvent) -> None:
        """More was told."""
        for kind, place, words in parts_of(event, is_native=self.is_native):
            last = self._parts[-1] if self._parts else None
            if kind in GROWING and last is not None and last[:2] == (kind, place):
                last[2].append(words)
            else:
                self._parts.append((kind, place, [words]))
        self.is_plain = self.is_plain and not is_rich(event)


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
        codec: says the rest of a frame of which a part was told; None where there is no such thing.
    """

    def __init__(self, said: Said, codec: TrimmingProvider | None) -> None:
        super().__init__(said)
        self._codec = codec
        self._told = said.parts[::-1]  # the next one is the last

    def encode(self, event: StreamEvent, extensions: Mapping[str, Any] | None = None) -> bytes:
        """The bytes of what is new in one event.

        Raises:
            OtherAnswerError: it is another answer.
        """
        if not self._told:
            return super().encode(event, extensions)
        if is_rich(event):
            raise OtherAnswerError
        given = list(parts_of(event, is_native=self._said.is_native))
        fresh = [one for one in map(self._beyond, given) if one is not None]
        if not fresh:
            return b""
        rest = with_parts(event, fresh)
        if self._said.is_native:
            raw = None if self._codec is None else self._codec.trimmed(event.raw, rest)
            if raw is None:
                raise OtherAnswerError
            rest = msgspec.structs.replace(rest, raw=raw)
        return super().encode(rest, extensions)

    def done(self) -> bytes:
        """The bytes that end a good stream.

        Raises:
            OtherAnswerError: it ended before it had said what was told.
        """
        if self._told:
            raise OtherAnswerError
        return super().done()

    def _beyond(self, part: Part) -> Part | None:
        """What of a part is new; None for nothing.

        Raises:
            OtherAnswerError: it is not what was told.
        """
        if not self._told:
            return part
        kind, place, words = self._told.pop()
        length = min(len(words), len(part.words)) if kind in GROWING else len(words)
        if (kind, place, words[:length]) != (part.kind, part.place, part.words[:length]):
            raise OtherAnswerError
        if kind not in GROWING:
            if words != part.words:
                raise OtherAnswerError
            return None
        if length < len(words):
            self._told.append(Part(kind, place, words[length:]))
        if length == len(part.words):
            return None
        if self._told:  # something else was told behind these words
            raise OtherAnswerError
        return Part(kind, place, part.words[length:])


def with_parts(event: StreamEvent, parts: list[Part]) -> StreamEvent:
    """An event that says no more than some of its parts."""
    by_kind: dict[Kind, str] = {part.kind: part.words for part in parts}
    calls: list[ToolCallDelta] = []
    for call in event.tool_calls:
        own = {part.kind: part.words for part in parts if part.place == call.index}
        head = call if Kind.CALL in own else msgspec.structs.replace(call, id=None, name=None)
        if Kind.CALL in own or Kind.ARGUMENTS in own:
            calls.append(msgspec.structs.replace(head, arguments=own.get(Kind.ARGUMENTS, "")))
    return msgspec.structs.replace(
        event,
        reasoning=by_kind.get(Kind.THOUGHT, ""),
        text=by_kind.get(Kind.TEXT, ""),
        tool_calls=tuple(calls),
        is_structure=Kind.FRAME in by_kind,
    )


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
        if not said.is_plain or said.is_native is not is_native:
            raise OtherAnswerError
        return GoingOn(said, trimming(target.codec))

    def last_words(self, exchange: Exchange, error: ErrorBody) -> bytes:
        """What ends a stream that nobody goes on with."""
        if self.said is None:
            return exchange.surface.encode_stream_error(error, exchange.id)
        return self.said.encoder.error(error, exchange.id)


def trimming(codec: Provider) -> TrimmingProvider | None:
    """The codec, if it can say less in a frame."""
    return codec if isinstance(codec, TrimmingProvider) else None
