"""The talk with a proxy before it passes bytes on: CONNECT (RFC 9110, 9.3.6) or SOCKS5 (RFC 1928).

Whatever a proxy says is its own affair: nothing of the request has left, and nothing of it says
anything of a key. Its words are never repeated; a status or a number of a table is.
"""

import asyncio
import ipaddress
import re
from types import MappingProxyType
from typing import Final, cast

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.upstream.faults import unsent
from cluster_gw.upstream.proxy import MAX_SOCKS_BYTES, Proxy, ProxyKind

MAX_HEAD_BYTES: Final = 16_384
END: Final = b"\r\n\r\n"
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?\r\n")
_FIRST_FINAL, _GOOD = 200, range(200, 300)
_AUTHENTICATION_REQUIRED: Final = 407

_VERSION: Final = 5
_NO_CREDENTIALS, _CREDENTIALS, _NONE_FITS = 0, 2, 255
_SUCCEEDED, _TARGET_REFUSED = 0, 5
_NAME, _IPV4, _IPV6 = 3, 1, 4
_SAID: Final = MappingProxyType(
    {
        1: "general failure",
        2: "not allowed by its rules",
        3: "network unreachable",
        4: "host unreachable",
        5: "connection refused",
        6: "ttl expired",
        7: "command not supported",
        8: "address type not supported",
    }
)


class TunnelError(Exception):
    """There is no tunnel; `fault` says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Talk(asyncio.Protocol):
    """What a proxy says until it passes on what the upstream says.

    Args:
        loop: the running loop.

    Attributes:
        transport: to the proxy.
        is_awaited: it has still to do its part.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._heard = bytearray()
        self._is_over = False
        self._waiter: asyncio.Future[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.is_awaited = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop: the proxy is connected."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Called by the loop: it said something."""
        self._heard += data
        self._wake()

    def eof_received(self) -> None:
        """Called by the loop: it says no more."""
        self._is_over = True
        self._wake()

    def connection_lost(self, _exc: Exception | None) -> None:
        """Called by the loop: it is gone."""
        self._is_over = True
        self._wake()

    async def open(self, proxy: Proxy, host: str, port: int) -> asyncio.Transport:
        """Have it pass everything on to an upstream from now on.

        Args:
            proxy: what is spoken to.
            host: name or address of the upstream, without brackets.
            port: of the upstream.

        Raises:
            TunnelError: it does not.
        """
        if proxy.kind in {ProxyKind.HTTP, ProxyKind.HTTPS}:
            await self._connect(proxy, host, port)
        else:
            await self._greet(proxy)
            await self._ask(host, port)
        if self._heard or self.transport is None:
            # An upstream that was told nothing yet has nothing to say.
            raise failed("said more than it should")
        self.is_awaited = False
        return self.transport

    async def read(self, count: int) -> bytes:
        """The next bytes, that many."""
        while len(self._heard) < count:
            await self._hear()
        found = bytes(self._heard[:count])
        del self._heard[:count]
        return found

    async def read_head(self) -> bytes:
        """All up to the next empty line, that included."""
        while (end := self._heard.find(END)) < 0:
            if len(self._heard) > MAX_HEAD_BYTES:
                raise failed("gave no HTTP answer")
            await self._hear()
        return await self.read(end + len(END))

    async def _connect(self, proxy: Proxy, host: str, port: int) -> None:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        head = f"CONNECT {place} HTTP/1.1\r\nhost: {place}\r\nuser-agent: cluster-gw\r\n".encode()
        if proxy.user is not None:
            head += b"proxy-authorization: " + proxy.basic + b"\r\n"
        self._tell(head + b"\r\n")
        status = 0
        while status < _FIRST_FINAL:
            answer = await self.read_head()
            line = _STATUS.match(answer)
            if line is None:
                raise failed("gave no HTTP answer")
            status = int(line[1])
        if status == _AUTHENTICATION_REQUIRED:
            raise failed("refuses the user or password it was given (407)")
        if status not in _GOOD:
            raise failed(f"answered CONNECT with status {status}")

    async def _greet(self, proxy: Proxy) -> None:
        user = proxy.user
        methods = bytes([_NO_CREDENTIALS] if user is None else [_NO_CREDENTIALS, _CREDENTIALS])
        self._tell(bytes([_VERSION, len(methods)]) + methods)
        version, method = await self.read(2)
        if version != _VERSION:
            raise failed("speaks no SOCKS5")
        if method == _CREDENTIALS and user is not None:
            password = proxy.password
            self._tell(bytes([1, len(user)]) + user + bytes([len(password)]) + password)
            _, verdict = await self.read(2)
            if verdict != _SUCCEEDED:
                raise failed("refuses the user or password it was given")
        elif method == _NONE_FITS:
            raise failed(
                "wants a user and a password" if user is None else "wants other credentials"
            )
        elif method != _NO_CREDENTIALS:
            raise failed("speaks no SOCKS5")

    async def _ask(self, host: str, port: int) -> None:
        self._tell(bytes([_VERSION, 1, 0]) + _written(host) + port.to_bytes(2, "big"))
        version, said, _, kind = await self.read(4)
        if version != _VERSION:
            raise failed("speaks no SOCKS5")
        if said == _TARGET_REFUSED:  # the one answer that tells whose fault it is
            raise TunnelError(unsent(FaultKind.CONNECT, "connect: refused, says the proxy"))
        if said != _SUCCEEDED:
            raise failed(f"says: {_SAID.get(said, f'failure {said}')}")
        sizes = {_IPV4: 4, _IPV6: 16}
        size = sizes[kind] if kind in sizes else (await self.read(1))[0]
        await self.read(size + 2)

    def _tell(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    async def _hear(self) -> None:
        if self._is_over:
            raise failed("closed the connection")
        self._waiter = self._loop.create_future()
        await self._waiter

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def failed(words: str) -> TunnelError:
    """The error of a proxy that does not do its part."""
    return TunnelError(unsent(FaultKind.PROXY, f"proxy {words}"))


def _written(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("ascii", "replace")
        if len(name) > MAX_SOCKS_BYTES:
            raise failed("cannot be told a name this long") from None
        return bytes([_NAME, len(name)]) + name
    return bytes([_IPV4 if address.version == 4 else _IPV6]) + address.packed  # noqa: PLR2004
