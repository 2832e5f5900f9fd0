"""A proxy on loopback, CONNECT or SOCKS5: it passes bytes on to where it is told, or refuses."""

import asyncio
import contextlib
import ipaddress
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FakeProxy:
    """Counts and remembers what it was asked for.

    Attributes:
        asked: each upstream it was told, `host:port`.
        credentials: what it wants, `user:password`; None for nothing.
        answer: bytes it answers with instead of doing its part.
        silent_for: the upstream it waits for in vain; all with `is_silent`.
        leads: where it connects instead of where it was told.
        heard: all it was sent before a tunnel stood.
    """

    def __init__(self, kind: str, credentials: str | None) -> None:
        self.kind = kind
        self.credentials = credentials
        self.asked: list[str] = []
        self.answer: bytes | None = None
        self.is_silent = False
        self.silent_for = ""
        self.leads: tuple[str, int] | None = None
        self.heard = b""
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Its address, with what it wants."""
        user = f"{self.credentials}@" if self.credentials else ""
        return f"{self.kind}://{user}127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            speak = self._http if self.kind.startswith("http") else self._socks
            place = await speak(reader, writer)
            if place is not None:
                await self._pass_on(place, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _http(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[str, int] | None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heard += head
        verb, place, _ = head.split(b"\r\n")[0].decode().split(" ")
        assert verb == "CONNECT"
        self.asked.append(place)
        given = [line for line in head.split(b"\r\n") if line.startswith(b"proxy-authorization: ")]
        if self.is_silent or place == self.silent_for:
            await reader.read()
        if self.answer is not None:
            writer.write(self.answer)
            await writer.drain()
            return None
        if self.credentials is not None:
            said = b64decode(given[0].split(b" ")[2]).decode() if given else ""
            if said != self.credentials:
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                await writer.drain()
                return None
        host, _, port = place.rpartition(":")
        return host.strip("[]"), int(port)

    async def _socks(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[str, int] | None:
        version, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        assert version == 5
        if self.credentials is not None:
            if 2 not in methods:
                writer.write(b"\x05\xff")
                return None
            writer.write(b"\x05\x02")
            _, size = await reader.readexactly(2)
            user = await reader.readexactly(size)
            password = await reader.readexactly((await reader.readexactly(1))[0])
            if b":".join((user, password)).decode() != self.credentials:
                writer.write(b"\x01\x01")
                return None
            writer.write(b"\x01\x00")
        else:
            writer.write(b"\x05\x00")
        _, command, _, kind = await reader.readexactly(4)
        assert command == 1
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            packed = await reader.readexactly({1: 4, 4: 16}[kind])
            host = str(ipaddress.ip_address(packed))
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append(f"{host}:{port}")
        if self.answer is not None:
            writer.write(self.answer)
            await writer.drain()
            return None
        return host, port

    async def _pass_on(
        self, place: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            beyond, out = await asyncio.open_connection(*(self.leads or place))
        except OSError:
            refusal = b"HTTP/1.1 502 Bad Gateway\r\n\r\n"
            writer.write(refusal if self.kind.startswith("http") else b"\x05\x05\0\1\0\0\0\0\0\0")
            await writer.drain()
            return
        agreed = b"HTTP/1.1 200 Connection established\r\n\r\n"
        writer.write(agreed if self.kind.startswith("http") else b"\x05\x00\0\1\0\0\0\0\0\0")
        try:
            await asyncio.gather(copy(reader, out), copy(beyond, writer))
        finally:
            out.transport.abort()


async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Passes bytes on until there are no more, and says so."""
    while data := await source.read(65_536):
        sink.write(data)
        await sink.drain()
    with contextlib.suppress(OSError):
        if sink.can_write_eof():
            sink.write_eof()
        else:
            sink.close()


@asynccontextmanager
async def proxying(
    kind: str = "http", *, credentials: str | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[FakeProxy]:
    """Run a proxy."""
    proxy = FakeProxy(kind, credentials)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=tls)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.stop()
