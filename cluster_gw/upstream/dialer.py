"""Opens connections: name, TCP to whichever address answers first, TLS.

Proxies of the environment are not used.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final

from aiohappyeyeballs import start_connection

from cluster_gw.canonical.failure import Fault
from cluster_gw.upstream.connection import Connection
from cluster_gw.upstream.faults import CONNECT_ERRORS, connect_fault
from cluster_gw.upstream.origin import Place
from cluster_gw.upstream.resolver import Resolver

NEXT_ADDRESS_S: Final = 0.25  # RFC 8305 section 5


class Dialer:
    """Makes connections for one pool.

    Args:
        loop: the running loop.
        tls: context for https; None is the platform's default with full verification.
        on_idle: given to every connection.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        tls: ssl.SSLContext | None,
        on_idle: Callable[[Connection], None],
    ) -> None:
        self._loop = loop
        self._tls = tls or _default_tls()
        self._on_idle = on_idle
        self._resolver = Resolver(loop)

    async def close(self) -> None:
        """Ends the look-ups that are under way."""
        await self._resolver.close()

    async def dial(self, place: Place, timeout_s: float) -> Connection | Fault:
        """A connection on which nothing was sent, or why there is none.

        Args:
            place: where to.
            timeout_s: bound for name resolution, TCP and TLS together, in seconds, > 0.
        """
        connection = Connection(place, self._loop, self._on_idle)
        try:
            async with asyncio.timeout(timeout_s):
                await self._open(connection)
        except CONNECT_ERRORS as exc:
            connection.abort()
            self._resolver.forget(place.host, place.port)
            return connect_fault(exc)
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _open(self, connection: Connection) -> None:
        place = connection.place
        addresses = await self._resolver.resolve(place.host, place.port)
        sock = await start_connection(
            addresses, happy_eyeballs_delay=NEXT_ADDRESS_S, interleave=1, loop=self._loop
        )
        is_owned = False
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            await self._loop.create_connection(
                lambda: connection,
                sock=sock,
                ssl=self._tls if place.is_tls else None,
                server_hostname=place.host.rstrip(".") if place.is_tls else None,
            )
            is_owned = True
        finally:
            if not is_owned:
                sock.close()


def _default_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
