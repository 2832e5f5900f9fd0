"""One upstream answer while its body is being read: chunks as they come, decoded, or a `Fault`."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.upstream.connection import Connection
from cluster_gw.upstream.faults import CLOSED
from cluster_gw.upstream.incoming import Fields, Incoming
from cluster_gw.wire.content_encoding import ContentDecoder, ContentEncodingError

TOO_LARGE: Final = Fault(kind=FaultKind.TOO_LARGE, message="answer above its bound")

Taker = Callable[[bytes], bool]
ReadChunk = Callable[[], Awaitable[bytes | Fault]]


class UpstreamResponse(Incoming):
    """Status and headers of an answer, and its body as a stream read by one task.

    The connection goes back to the pool by itself when the body has been received to its end,
    even if it was not yet read here. In every other case the owner calls `close`.
    """

    __slots__ = ("_connection", "_decoder", "_headers", "_taker")

    def __init__(self, connection: Connection) -> None:
        # All that the base class sets: there is one for each call, and its own way costs a third.
        self.status = 0
        self.fields: Fields = []
        self.media_type = b""
        self.coding = b""
        self.is_framed = False
        self.parts: list[bytes] = []
        self.waiting_bytes = 0
        self.is_complete = self.is_unsent = False
        self.fault: Fault | None = None
        self.waiter: asyncio.Future[None] | None = None
        self._connection = connection
        self._decoder: ContentDecoder | None = None
        self._headers: dict[str, str] | None = None
        self._taker: Taker | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """All headers: lower-case names, the first value of each, bytes read as Latin-1."""
        if self._headers is None:
            self._headers = {
                name.decode("latin-1").lower(): value.decode("latin-1").strip(" \t")
                for name, value in reversed(self.fields)
            }
        return self._headers

    @property
    def content_type(self) -> str:
        """The media type in lower case without parameters; "" when the answer names none."""
        return self.media_type.decode("latin-1").partition(";")[0].strip().lower()

    def expect(self) -> asyncio.Future[None]:
        """What to await for more: done when there is a head, bytes, an end or a fault to look at.

        Whoever awaits it must `close` the answer when that fails.
        """
        self.waiter = waiter = self._connection.loop.create_future()
        return waiter

    async def read_chunk(self) -> bytes | Fault:
        """The next decoded bytes, as soon as there are any.

        Returns:
            Non-empty bytes; b"" at the clean end of the body; a fault when the body broke (bytes
            that came before the break are given first). After an end or a fault the same again.
        """
        while True:
            if self.parts:
                raw = self._take()
                if not self.coding:
                    return raw
                decoded = self._decode(raw)
                if decoded:
                    return decoded
            elif self.fault is not None:
                return self.fault
            elif self.is_complete:
                return self._finish()
            else:
                try:
                    await self.expect()
                except BaseException:
                    self.close()
                    raise

    def take_all(self, max_bytes: int) -> bytes | None:
        """The whole body, if it is here as it is and no larger; else `read_chunk` has to tell."""
        if not self.is_complete or self.coding or self.fault is not None:
            return None
        return self._take() if self.parts and self.waiting_bytes <= max_bytes else None

    async def hand_to(self, take: Taker) -> None:
        """Hand on what comes as it comes, without waking the task for each piece.

        Args:
            take: called with decoded bytes, from the loop; whether it wants more.

        Returns when `take` wants no more, or when only `read_chunk` can tell what follows: an end
        or a fault, and what came with it.
        """
        while self.parts and not self.is_complete and self.fault is None:
            if not self._offer(take):
                return
        if self.is_complete or self.fault is not None:
            return
        self._taker = take
        try:
            await self.expect()
        except BaseException:
            self.close()
            raise
        finally:
            self._taker = None

    def wake(self) -> None:
        """Lets the reader look again, or hands on what came."""
        take = self._taker
        if take is not None and not self.is_complete and self.fault is None:
            try:
                if self._offer(take):
                    return
            except Exception as bug:  # noqa: BLE001 - it belongs to the reader, not to the connection
                self.crash(bug)
                return
        self._taker = None
        super().wake()

    async def read_body(self, max_bytes: int) -> bytes | Fault:
        """The rest of the body in one piece.

        Args:
            max_bytes: bound of the decoded size in bytes; a larger answer is closed and is a
                TOO_LARGE fault.
        """
        body = await read_to_end(self.read_chunk, max_bytes)
        return self._break_off(body) if body is TOO_LARGE else body

    def close(self) -> None:
        """Ends the answer; aborts the connection unless the whole body had been received."""
        if self.fault is None:
            self.fault = CLOSED
        self.parts.clear()
        # Complete, or never asked for, it has no connection any more: that may already carry
        # somebody else's.
        if not self.is_complete and not self.is_unsent:
            self._connection.abort()

    def _offer(self, take: Taker) -> bool:
        """Give all that waits to `take`; whether to go on."""
        raw = self._take()
        decoded = self._decode(raw) if self.coding else raw
        return take(decoded) if decoded else self.fault is None

    def _take(self) -> bytes:
        parts = self.parts
        raw = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.waiting_bytes = 0
        if not self.is_complete:
            self._connection.resume()
        return raw

    def _break_off(self, fault: Fault) -> Fault:
        self.fault = fault
        self.close()
        return fault

    def _finish(self) -> bytes | Fault:
        """The end of the framing: clean only if the content coding ended cleanly too."""
        if self._decoder is not None:
            try:
                self._decoder.finish()
            except ContentEncodingError:
                return self._break_off(
                    Fault(kind=FaultKind.CUT, message="content coding ended early")
                )
        return b""

    def _decode(self, raw: bytes) -> bytes:
        if self._decoder is None:
            self._decoder = ContentDecoder(self.coding.decode("latin-1"))
        try:
            return self._decoder.feed(raw)
        except ContentEncodingError:
            self._break_off(Fault(kind=FaultKind.MALFORMED, message="content coding is broken"))
            return b""


async def read_to_end(read_chunk: ReadChunk, max_bytes: int) -> bytes | Fault:
    """What a reader of chunks gives until there is no more; `TOO_LARGE` when that is above a bound.

    Args:
        read_chunk: gives the next bytes, none at the end.
        max_bytes: of all of it.
    """
    body = bytearray()
    while len(body) <= max_bytes:
        chunk = await read_chunk()
        if isinstance(chunk, Fault):
            return chunk
        if not chunk:
            return bytes(body)
        body += chunk
    return TOO_LARGE
