"""A client that reads to the end of the connection and trusts nothing: HTTP/1.1 and SSE by hand."""

import asyncio
import socket
import struct
import time
from typing import Any, Final

import msgspec

PATH: Final = "/v1/chat/completions"
CLIENT_KEY: Final = "sk-client"


class Heard(msgspec.Struct, kw_only=True):
    """All that came back.

    Attributes:
        status: 0 when no status line came.
        is_whole: the body ended by its own framing.
        extra: bytes after that end.
        is_hung: the connection was still open at the bound.
    """

    status: int = 0
    headers: dict[str, str] = {}
    body: bytes = b""
    is_whole: bool = False
    extra: bytes = b""
    is_hung: bool = False
    elapsed_s: float = 0.0


def request_bytes(document: dict[str, Any], **headers: str) -> bytes:
    """A whole request of the one client; asks for the connection to be closed after the answer."""
    body = msgspec.json.encode(document)
    lines = [f"POST {PATH} HTTP/1.1", "host: gateway", "connection: close"]
    lines.append(f"authorization: Bearer {CLIENT_KEY}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += ["content-type: application/json", f"content-length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


async def ask(port: int, request: bytes, within_s: float) -> Heard:
    """Send a request and read until the server closes."""
    started_s = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    parts: list[bytes] = []
    is_hung = False
    try:
        writer.write(request)
        async with asyncio.timeout(within_s):
            while part := await reader.read(65536):
                parts.append(part)
    except TimeoutError:
        is_hung = True
    except ConnectionError:
        is_hung = False
    finally:
        writer.transport.abort()
    heard = parse(b"".join(parts))
    heard.is_hung = is_hung
    heard.elapsed_s = time.monotonic() - started_s
    return heard


def parse(data: bytes) -> Heard:
    """Read a response strictly."""
    head, separator, rest = data.partition(b"\r\n\r\n")
    if not separator:
        return Heard(extra=data)
    lines = head.decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    heard = Heard(status=int(lines[0].split(" ")[1]), headers=headers)
    if headers.get("transfer-encoding") == "chunked":
        _read_chunks(heard, rest)
    else:
        length = int(headers["content-length"])
        heard.body, heard.extra = rest[:length], rest[length:]
        heard.is_whole = len(heard.body) == length
    return heard


def _read_chunks(heard: Heard, rest: bytes) -> None:
    parts: list[bytes] = []
    while True:
        size_text, separator, after = rest.partition(b"\r\n")
        if not separator:
            break
        size = int(size_text, 16)
        if size == 0:
            heard.is_whole = after.startswith(b"\r\n")
            heard.extra = after[2:]
            break
        parts.append(after[:size])
        if len(after) < size + 2:
            break
        rest = after[size + 2 :]
    heard.body = b"".join(parts)


def payloads_of(body: bytes) -> list[bytes] | None:
    """The payload of each event, comments left out; None when the body is no clean SSE."""
    if not body:
        return []
    if not body.endswith(b"\n\n"):
        return None
    payloads: list[bytes] = []
    for block in body[:-2].split(b"\n\n"):
        if block.startswith(b":"):
            continue
        if not block.startswith(b"data: ") or b"\n" in block:
            return None
        payloads.append(block[6:])
    return payloads


class Visitor:
    """A client that leaves when it wants to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def come(cls, port: int, *, receive_bytes: int = 0) -> "Visitor":
        """Connect; a small receive buffer makes the client's slowness felt at once."""
        link = socket.socket()
        if receive_bytes:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        link.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(link, ("127.0.0.1", port))
        except BaseException:
            link.close()
            raise
        reader, writer = await asyncio.open_connection(sock=link, limit=4096)
        return cls(reader, writer)

    async def send(self, data: bytes) -> None:
        """Write and wait until it has left."""
        self.writer.write(data)
        await self.writer.drain()

    async def read_frames(self, count: int, within_s: float) -> None:
        """Read until that many frames have arrived."""
        seen = b""
        async with asyncio.timeout(within_s):
            while seen.count(b"data: ") < count or not seen.endswith(b"\n\n\r\n"):
                part = await self.reader.read(256)
                assert part, "the stream ended before the frame"
                seen += part

    async def read_to_end(self, within_s: float) -> None:
        """Read until the end marker of the answer has arrived."""
        seen = b""
        async with asyncio.timeout(within_s):
            while b"data: [DONE]\n\n" not in seen:
                part = await self.reader.read(4096)
                assert part, "the connection ended before the answer"
                seen += part

    def leave(self, *, reset: bool) -> None:
        """Close, with a reset or in order; a second time changes nothing."""
        link = self.writer.get_extra_info("socket")
        if reset and not self.writer.is_closing():
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
