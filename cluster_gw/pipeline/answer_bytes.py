"""Bytes of answers that do not come from an upstream's connection, and copies of those that do."""

from collections.abc import Callable
from typing import Final

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.pipeline.opened import AnswerBytes
from cluster_gw.store.cache_codec import Head
from cluster_gw.store.cache_feed import Ended, Feed, Lost
from cluster_gw.upstream.response import TOO_LARGE, Taker, read_to_end

CLOSED: Final = Lost("closed")
LOST: Final = Fault(kind=FaultKind.CUT, message="whoever fetched the answer is gone")


class StoredBytes:
    """An answer that is here; see `opened.AnswerBytes`.

    Args:
        payload: all of it.
        content_type: as the upstream said.
    """

    is_complete = True

    def __init__(self, payload: bytes, content_type: str) -> None:
        self.content_type = content_type
        self._payload = payload

    async def read_chunk(self) -> bytes | Fault:
        """All of it, then nothing."""
        return self._take()

    async def read_body(self, max_bytes: int) -> bytes | Fault:
        """All of it."""
        return TOO_LARGE if len(self._payload) > max_bytes else self._take()

    def take_all(self, max_bytes: int) -> bytes | None:
        """All of it."""
        return self._take() if 0 < len(self._payload) <= max_bytes else None

    async def hand_to(self, take: Taker) -> None:
        """Hand all of it on."""
        payload = self._take()
        if payload:
            take(payload)

    def close(self) -> None:
        """Forget it."""
        self._payload = b""

    def _take(self) -> bytes:
        payload, self._payload = self._payload, b""
        return payload


class FedBytes:
    """An answer that another request fetches; see `opened.AnswerBytes`.

    Args:
        feed: where it is read.
        head: what came first.

    Attributes:
        lost: why no more comes; None while it does, or all has come.
    """

    def __init__(self, feed: Feed, head: Head) -> None:
        self.content_type = head.content_type
        self.is_complete = False
        self.lost: Lost | None = None
        self._feed = feed

    async def read_chunk(self) -> bytes | Fault:
        """The next bytes, as soon as they are there."""
        if self.is_complete:
            return b""
        if self.lost is not None:
            return LOST
        async for told in self._feed:
            if isinstance(told, bytes):
                return told
            if isinstance(told, Ended):
                self.is_complete = True
                return b""
            if isinstance(told, Lost):
                self.lost = told
                return LOST
        self.lost = CLOSED
        return LOST

    async def read_body(self, max_bytes: int) -> bytes | Fault:
        """The rest in one piece."""
        return await read_to_end(self.read_chunk, max_bytes)

    def take_all(self, max_bytes: int) -> bytes | None:  # noqa: ARG002 - it is not all here
        """Nothing: it has to be read."""
        return None

    async def hand_to(self, take: Taker) -> None:
        """Hand on what comes as it comes; at an end `read_chunk` tells which."""
        while True:
            chunk = await self.read_chunk()
            if isinstance(chunk, Fault) or not chunk or not take(chunk):
                return

    def close(self) -> None:
        """Nobody reads on."""
        self._feed.close()


class Tape:
    """What came of an answer so far.

    Args:
        most_bytes: more is not kept, but until it was handed on.

    Attributes:
        content_type: of it; None while nothing was recorded.
        is_over: there was more.
    """

    def __init__(self, most_bytes: int) -> None:
        self.content_type: str | None = None
        self.is_over = False
        self._left_bytes = most_bytes
        self._pieces: list[bytes] = []
        self._hand_on: Callable[[bytes], None] | None = None

    def add(self, piece: bytes) -> None:
        """More has come."""
        if self._hand_on is not None:
            self._hand_on(piece)
        self._left_bytes -= len(piece)
        self.is_over = self._left_bytes < 0
        if self.is_over and self._hand_on is not None:
            self._pieces.clear()
        else:
            self._pieces.append(piece)

    def hand_to(self, take: Callable[[bytes], None]) -> None:
        """Hand on what has come, and from now on what comes."""
        for piece in self._pieces:
            take(piece)
        self._hand_on = take
        if self.is_over:
            self._pieces.clear()

    @property
    def payload(self) -> bytes:
        """All of it; empty when it is over."""
        return b"" if self.is_over else b"".join(self._pieces)


class TapedBytes:
    """An answer that is copied as it is read; see `opened.AnswerBytes`.

    Args:
        response: the answer.
        tape: takes the copy.
    """

    def __init__(self, response: AnswerBytes, tape: Tape) -> None:
        self.content_type = tape.content_type = response.content_type
        self._response = response
        self._tape = tape

    @property
    def is_complete(self) -> bool:
        """As the other's."""
        return self._response.is_complete

    async def read_chunk(self) -> bytes | Fault:
        """The next bytes."""
        chunk = await self._response.read_chunk()
        if isinstance(chunk, bytes) and chunk:
            self._tape.add(chunk)
        return chunk

    async def read_body(self, max_bytes: int) -> bytes | Fault:
        """The rest in one piece."""
        body = await self._response.read_body(max_bytes)
        if isinstance(body, bytes):
            self._tape.add(body)
        return body

    def take_all(self, max_bytes: int) -> bytes | None:
        """All of it, if it is here and no larger."""
        body = self._response.take_all(max_bytes)
        if body is not None:
            self._tape.add(body)
        return body

    async def hand_to(self, take: Taker) -> None:
        """Hand on what comes as it comes."""
        tape = self._tape

        def both(chunk: bytes) -> bool:
            tape.add(chunk)
            return take(chunk)

        await self._response.hand_to(both)

    def close(self) -> None:
        """Ends it."""
        self._response.close()
