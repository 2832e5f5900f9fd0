"""HTTP/1.1 by hand: requests in with httptools, bytes out as exactly as a fault wants them.

A framework would not let a response be cut at byte N, answered with garbage or reset. One
`Connection` per socket; it answers pipelined requests in order. It keeps reading while it
answers, so that a client that leaves is seen at once.
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

import httptools
import msgspec

from cluster_gw.simulator.reply import Headers

MAX_HEAD_BYTES: Final = 65_536
MAX_WAITING: Final = 64  # pipelined requests; more is not a client we serve
RST_DELAY_S: Final = 0.01  # lets the bytes before a reset be read
RST_POLL_S: Final = 0.001
RST_POLLS: Final = 30_000  # a client that reads nothing for 30 s loses the bytes before the reset
REASONS: Final[Mapping[int, str]] = {status.value: status.phrase for status in HTTPStatus}


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was read to its end; header names are lower case, the last value counts."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    keep_alive: bool


Serve = Callable[[HttpRequest, "Channel"], Awaitable[None]]


class Connection(asyncio.Protocol):
    """Parses requests and has each answered by `serve`, one after the other."""

    def __init__(self, serve: Serve, max_body_bytes: int, open_ones: "set[Connection]") -> None:
        self._serve = serve
        self._max_body_bytes = max_body_bytes
        self._open_ones = open_ones
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[HttpRequest] = deque()
        self._task: asyncio.Task[None] | None = None
        self._channel: Channel | None = None
        self._writable: asyncio.Future[None] | None = None
        self._is_ending = False
        self.lost = asyncio.Event()
        self._begin_message()

    # What the event loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of a new client."""
        # Servers give both directions; uvloop's class is no subclass that could be tested for.
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._open_ones.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Tell the answer in progress that nobody reads it any more."""
        self._open_ones.discard(self)
        self._is_ending = True
        self.lost.set()
        self._waiting.clear()
        if self._channel is not None and self._channel.on_lost is not None:
            self._channel.on_lost()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Read on; broken HTTP ends the connection."""
        if self._is_ending:
            return
        head = self._headers
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return  # answered as plain HTTP, then closed
        except httptools.HttpParserError:
            self._refuse(self._fault_status or 400)
            return
        # Where a request ended within these bytes, most of them may be its body.
        if self._is_in_head and self._headers is head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(431)

    def pause_writing(self) -> None:
        """The client reads slowly: `drain` waits."""
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """The client caught up."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    async def drain(self) -> None:
        """Wait until the client has read enough."""
        if self._writable is not None:
            await asyncio.shield(self._writable)

    # What the parser tells.

    def on_url(self, url: bytes) -> None:
        """A part of the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is read; a client that asks before it sends its body is told to."""
        self._is_in_head = False
        if self._headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._body += body
        if len(self._body) > self._max_body_bytes:
            self._fault_status = 413
            raise ValueError("body too large")

    def on_message_complete(self) -> None:
        """The request is whole: answer it, or let it wait its turn."""
        request = HttpRequest(
            method=self._parser.get_method().decode("ascii"),
            path=self._url.decode("latin-1").partition("?")[0],
            headers=self._headers,
            body=bytes(self._body),
            keep_alive=self._parser.should_keep_alive() and not self._parser.should_upgrade(),
        )
        self._begin_message()
        self._waiting.append(request)
        if len(self._waiting) > MAX_WAITING:
            self.transport.abort()
        elif self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._answer_all())

    def abandon(self) -> None:
        """Drop the connection at once."""
        self.transport.abort()

    async def end(self, mode: str) -> None:
        """End the connection after what was written: `fin` in order, `rst` with a reset."""
        self._is_ending = True
        if mode == "fin":
            self.transport.close()
            return
        for _ in range(RST_POLLS):
            if not self.transport.get_write_buffer_size():
                break
            await asyncio.sleep(RST_POLL_S)
        await asyncio.sleep(RST_DELAY_S)
        raw = self.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    async def _answer_all(self) -> None:
        is_whole = False
        try:
            while self._waiting and not self._is_ending:
                request = self._waiting.popleft()
                self._channel = Channel(self, keep_alive=request.keep_alive)
                await self._serve(request, self._channel)
                if not request.keep_alive:
                    self._is_ending = True
            is_whole = True
        finally:
            self._task = None  # the channel stays: an answer that broke off must learn of the loss
            if not is_whole:
                self.transport.abort()
            elif self._is_ending:
                self.transport.close()

    def _begin_message(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._is_in_head = True
        self._head_bytes = 0
        self._fault_status = 0

    def _refuse(self, status: int) -> None:
        """Answer a request that cannot be read, and close."""
        self._is_ending = True
        if self._task is not None:
            self.transport.abort()
            return
        head = f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-length: 0\r\nconnection: close\r\n"
        self.transport.write(head.encode() + b"\r\n")
        self.transport.close()


class Channel:
    """The answering side of one request. Bytes are gathered and leave at `flush`."""

    def __init__(self, connection: Connection, *, keep_alive: bool) -> None:
        self._connection = connection
        self._keep_alive = keep_alive
        self._gathered: list[bytes] = []
        self._is_chunked = False
        self._left_bytes: int | None = None
        self.gathered_bytes = 0
        self.on_lost: Callable[[], None] | None = None

    def limit_wire(self, wire_bytes: int) -> None:
        """Let at most this many bytes of the whole response out, its head included."""
        self._left_bytes = wire_bytes

    def write_head(
        self, status: int, content_type: str, headers: Headers, length: int | None
    ) -> None:
        """Begin a response; without a length it is chunked."""
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}"]
        lines.append(f"content-type: {content_type}")
        lines.extend(f"{name}: {value}" for name, value in headers)
        self._is_chunked = length is None
        lines.append(
            "transfer-encoding: chunked" if length is None else f"content-length: {length}"
        )
        if not self._keep_alive:
            lines.append("connection: close")
        self.write_raw(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"))

    def write_body(self, data: bytes) -> None:
        """Add bytes of the body, as one chunk if chunked."""
        if self._is_chunked and data:
            self.write_raw(b"%x\r\n%b\r\n" % (len(data), data))
        else:
            self.write_raw(data)

    def write_end(self) -> None:
        """Complete the response."""
        if self._is_chunked:
            self.write_raw(b"0\r\n\r\n")

    def write_raw(self, data: bytes) -> None:
        """Add bytes as they are."""
        self._gathered.append(data)
        self.gathered_bytes += len(data)

    def flush(self) -> bool:
        """Send what was gathered; false when the limit of the wire was met."""
        data = b"".join(self._gathered)
        self._gathered.clear()
        self.gathered_bytes = 0
        if self._left_bytes is not None:
            data = data[: self._left_bytes]
            self._left_bytes -= len(data)
        if data:
            self._connection.transport.write(data)
        return self._left_bytes != 0

    async def drain(self) -> None:
        """Wait until the client has read enough."""
        await self._connection.drain()

    async def end(self, mode: str) -> None:
        """Send what was gathered and end the connection: `fin` or `rst`."""
        self.flush()
        await self._connection.end(mode)
