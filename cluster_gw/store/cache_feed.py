"""An answer that is still coming, for everybody in this worker who waits for the same."""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from cluster_gw.store.cache_codec import EntryUnreadableError, Head
from cluster_gw.store.sealing import Seal, UnsealError

HEAD: Final = b"h"
BYTES: Final = b"b"
END: Final = b"e"
ELEMENT_BYTES: Final = 256 * 1024


class Ended(msgspec.Struct, frozen=True):
    """The answer is whole."""


class Lost(msgspec.Struct, frozen=True):
    """No more comes: its leader is dead, gave up, or cannot be heard.

    Attributes:
        reason: one word, for numbers and records.
    """

    reason: str


Piece = Head | bytes
Told = Head | bytes | Ended | Lost


class Tail:
    """What has come so far.

    Args:
        digest: of the request.
        token: of the lead.
        most_bytes: more than that is not kept for who may yet come.
        shared_bytes: the same for who reads it, no less.

    Attributes:
        digest: of the request.
        token: of the lead.
        pieces: in order.
        end: how it ended; None while it goes on.
        readers: feeds that are read.
        is_read_elsewhere: another worker reads along.
        when_alone: called when nobody reads any more what still comes; None for nothing.
    """

    def __init__(self, digest: str, token: int, most_bytes: int, shared_bytes: int) -> None:
        self.digest = digest
        self.token = token
        self.pieces: list[Piece] = []
        self.end: Ended | Lost | None = None
        self.readers = 0
        self.is_read_elsewhere = False
        self.when_alone: Callable[[], None] | None = None
        self._left_bytes = most_bytes
        self._spare_bytes = shared_bytes - most_bytes
        self._waiting: list[asyncio.Future[None]] = []

    def add(self, piece: Piece) -> None:
        """More has come; nothing is no piece."""
        if self.end is not None or piece == b"":
            return
        if isinstance(piece, bytes):
            self._left_bytes -= len(piece)
            spare_bytes = self._spare_bytes if self.is_awaited else 0
            if self._left_bytes + spare_bytes < 0:
                self.close(Lost("too_large"))
                return
        self.pieces.append(piece)
        self._wake()

    @property
    def is_awaited(self) -> bool:
        """Whether anybody reads it."""
        return self.readers > 0 or self.is_read_elsewhere

    def leave(self) -> None:
        """One that read it does so no longer."""
        self.readers -= 1
        if self.when_alone is not None and self.end is None and not self.is_awaited:
            when_alone, self.when_alone = self.when_alone, None
            when_alone()

    def close(self, end: Ended | Lost) -> None:
        """Nothing more comes; the first call counts."""
        if self.end is None:
            self.end = end
            self._wake()

    def taken_from(self, at: int) -> tuple[Piece, int]:
        """The next piece, and the place behind it; bytes that have come together are one.

        Args:
            at: a place before the last piece.
        """
        first = self.pieces[at]
        if isinstance(first, Head):
            return first, at + 1
        parts, size = [first], len(first)
        for piece in self.pieces[at + 1 :]:
            if isinstance(piece, Head) or size + len(piece) > ELEMENT_BYTES:
                break
            parts.append(piece)
            size += len(piece)
        return (first if len(parts) == 1 else b"".join(parts)), at + len(parts)

    async def more_than(self, at: int) -> None:
        """Wait until there is more than that, or the end."""
        while len(self.pieces) <= at and self.end is None:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


class Feed:
    """What one follower reads: a `Head`, bytes, and at last `Ended` or `Lost`.

    To be closed by whoever stops before that.
    """

    def __init__(self, tail: Tail) -> None:
        self._tail: Tail | None = tail
        self._at = 0
        tail.readers += 1

    def __aiter__(self) -> "Feed":
        return self

    async def __anext__(self) -> Told:
        """The next of these, as soon as it is there."""
        tail = self._tail
        if tail is None:
            raise StopAsyncIteration
        await tail.more_than(self._at)
        if self._at < len(tail.pieces):
            piece, self._at = tail.taken_from(self._at)
            return piece
        self.close()
        return Lost("closed") if tail.end is None else tail.end

    def close(self) -> None:
        """Nobody reads it any more. Safe to repeat."""
        if self._tail is not None:
            tail, self._tail = self._tail, None
            tail.leave()


class FeedCodec:
    """Writes pieces of a feed and reads them, each only in its place.

    Args:
        seal: encrypts them.
        name: of the feed's key.
    """

    def __init__(self, seal: Seal, name: str) -> None:
        self._seal = seal
        self._name = name

    def encode(self, place: int, piece: Piece | Ended) -> bytes:
        """How a piece is written in a place of the feed, counted from 0."""
        if isinstance(piece, Head):
            value = HEAD + msgspec.msgpack.encode(piece)
        else:
            value = END if isinstance(piece, Ended) else BYTES + piece
        return self._seal.close(f"{self._name}:{place}", value)

    def decode(self, place: int, stored: bytes) -> Piece | Ended:
        """What was written there.

        Raises:
            EntryUnreadableError: it is not ours.
        """
        try:
            value = self._seal.open(f"{self._name}:{place}", stored)
            if value[:1] == HEAD:
                return msgspec.msgpack.decode(value[1:], type=Head)
        except (UnsealError, msgspec.MsgspecError, UnicodeError) as fault:
            raise EntryUnreadableError(type(fault).__name__) from None
        if value == END:
            return Ended()
        if value[:1] != BYTES:
            raise EntryUnreadableError("no piece")
        return value[1:]
