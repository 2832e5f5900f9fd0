"""A loopback server that does to a connection exactly what a test says, byte by byte."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Script = Callable[["Peer"], Awaitable[None]]


class Peer:
    """One accepted connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.gone = asyncio.Event()

    async def request(self) -> bytes:
        """Reads one whole request: head and the body its content-length names."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return head + await self.reader.readexactly(length)

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def reset(self) -> None:
        """Closes with RST instead of FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def until_gone(self) -> None:
        """Waits until the client has closed; extra bytes are dropped."""
        try:
            while await self.reader.read(65_536):
                continue
        except ConnectionError:
            return


class RawServer:
    """Runs one script per accepted connection, in order; the last script repeats."""

    def __init__(self, scripts: tuple[Script, ...]) -> None:
        self._scripts = scripts
        self.accepted = 0
        self.closed_by_client = asyncio.Event()
        self.requests: list[bytes] = []
        self.port = 0
        self.scheme = "http"
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/v1/chat/completions?beta=1"

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = self._scripts[min(self.accepted, len(self._scripts) - 1)]
        self.accepted += 1
        task = asyncio.get_running_loop().create_task(self._run(script, Peer(reader, writer)))
        self._tasks.add(task)

    async def _run(self, script: Script, peer: Peer) -> None:
        try:
            await script(peer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.closed_by_client.set()
        finally:
            peer.writer.transport.abort()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def serving(*scripts: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    state = RawServer(scripts)
    server = await asyncio.start_server(state.accept, "127.0.0.1", 0, ssl=tls)
    state.port = server.sockets[0].getsockname()[1]
    state.scheme = "http" if tls is None else "https"
    try:
        yield state
    finally:
        server.close()
        await state.stop()


def answering(*pieces: bytes, close: bool = True, gap: bool = True) -> Script:
    """A script: one request, then the pieces (each in its own segment), then close or hold."""

    async def script(peer: Peer) -> None:
        await peer.request()
        for piece in pieces:
            peer.send(piece)
            if gap:
                await asyncio.sleep(0.005)
        if not close:
            await peer.until_gone()

    return script


def ok(body: bytes, *headers: bytes) -> bytes:
    """A whole 200 answer with a content-length."""
    lines = [b"HTTP/1.1 200 OK", b"content-length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
