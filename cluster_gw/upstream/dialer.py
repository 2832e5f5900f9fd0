"""Opens connections: name, TCP to whichever address answers first, a proxy on the way, TLS.

Proxies of the environment are not used.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final, cast

from aiohappyeyeballs import start_connection

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.upstream.connection import Connection
from cluster_gw.upstream.faults import CONNECT_ERRORS, connect_fault, proxy_fault, unsent
from cluster_gw.upstream.origin import Place
from cluster_gw.upstream.proxy import Proxy, ProxyKind, Way
from cluster_gw.upstream.reach import Reach, may_reach, place_of_host, place_of_text
from cluster_gw.upstream.resolver import AddrInfo, Resolver
from cluster_gw.upstream.tunnel import Talk, TunnelError

NEXT_ADDRESS_S: Final = 0.25  # RFC 8305 section 5
PROXY_REST_S: Final = 2.0
PLACE_REST_S: Final = 15.0  # an upstream that a proxy waits for in vain
MAX_RESTING: Final = 1_024


class Dialer:
    """Makes connections for one pool.

    Args:
        loop: the running loop.
        tls: context for https; None is the platform's default with full verification.
        on_idle: given to every connection.
        head_start_s: seconds of age that the next connection is given at its birth, >= 0.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        tls: ssl.SSLContext | None,
        on_idle: Callable[[Connection], None],
        head_start_s: Callable[[], float] = float,
    ) -> None:
        self._loop = loop
        self._head_start_s = head_start_s
        self._tls = tls or _default_tls()
        self._on_idle = on_idle
        self._resolver = Resolver(loop)
        self._resting: dict[tuple[Proxy, Place | None], tuple[float, Fault]] = {}

    async def close(self) -> None:
        """Ends the look-ups that are under way."""
        await self._resolver.close()

    async def dial(self, place: Place, timeout_s: float) -> Connection | Fault:
        """A connection on which nothing was sent, or why there is none.

        Args:
            place: where to.
            timeout_s: bound for name resolution, TCP, proxy and TLS together, in seconds, > 0.
        """
        connection = Connection(place, self._loop, self._on_idle)
        connection.born_s -= self._head_start_s()
        way = place.way
        until_s = self._loop.time() + timeout_s
        try:
            if way is not None and way.proxy is not None:
                await self._open_through(connection, way.proxy, until_s)
            else:
                async with asyncio.timeout_at(until_s):
                    await self._open(connection)
        except TunnelError as exc:
            connection.abort()
            return exc.fault
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
        sock = await self._connect(place.host, place.port, reach_of(place.way))
        await self._speak(sock, lambda: connection, place.host if place.is_tls else None)

    async def _open_through(self, connection: Connection, proxy: Proxy, until_s: float) -> None:
        """Have a proxy pass on what is said to the upstream; TLS is spoken with that."""
        place = connection.place
        for resting in (self._resting.get((proxy, None)), self._resting.get((proxy, place))):
            if resting is not None and self._loop.time() < resting[0]:
                raise TunnelError(resting[1])
        talk = Talk(self._loop)
        try:
            async with asyncio.timeout_at(until_s):
                host = await self._host_for(proxy, place)
                transport = await self._tunnel(talk, proxy, host, place.port)
                if place.is_tls:
                    upgraded = await self._loop.start_tls(
                        transport, connection, self._tls, server_hostname=place.host.rstrip(".")
                    )
                    transport = cast("asyncio.Transport", upgraded)
                else:
                    transport.set_protocol(connection)
                connection.connection_made(transport)
        except BaseException as exc:
            if talk.transport is not None:
                talk.transport.abort()
            if talk.is_awaited and isinstance(exc, CONNECT_ERRORS):
                is_reached = talk.transport is not None
                raise self._rest(proxy, place if is_reached else None, proxy_fault(exc)) from None
            raise

    async def _tunnel(self, talk: Talk, proxy: Proxy, host: str, port: int) -> asyncio.Transport:
        talk.is_awaited = True
        sock = await self._connect(proxy.host, proxy.port, Reach.ANYWHERE)
        name = proxy.host if proxy.kind is ProxyKind.HTTPS else None
        await self._speak(sock, lambda: talk, name)
        return await talk.open(proxy, host, port)

    def _rest(self, proxy: Proxy, place: Place | None, fault: Fault) -> TunnelError:
        """Have nobody wait for a proxy that is away: no rest of a key would spare them that.

        One that was reached may be waiting itself, for one upstream (`place`): others go on.
        """
        rest_s = PROXY_REST_S if place is None else PLACE_REST_S
        if place is None:
            self._resolver.forget(proxy.host, proxy.port)
        if len(self._resting) >= MAX_RESTING:
            self._resting.clear()
        self._resting[proxy, place] = self._loop.time() + rest_s, fault
        return TunnelError(fault)

    async def _host_for(self, proxy: Proxy, place: Place) -> str:
        """What a proxy is to be told of where to go."""
        reach = reach_of(place.way)
        told = place_of_host(place.host)
        if told is not None and not may_reach(told, reach):
            raise forbidden()
        if proxy.resolves_names:
            return place.host
        return str((await self._addresses(place.host, place.port, reach))[0][4][0])

    async def _connect(self, host: str, port: int, reach: Reach) -> socket.socket:
        return await start_connection(
            await self._addresses(host, port, reach),
            happy_eyeballs_delay=NEXT_ADDRESS_S,
            interleave=1,
            loop=self._loop,
        )

    async def _addresses(self, host: str, port: int, reach: Reach) -> list[AddrInfo]:
        """Those of a host that may be connected to; it is these that are, not the name."""
        found = await self._resolver.resolve(host, port)
        allowed = [one for one in found if may_reach(place_of_text(str(one[4][0])), reach)]
        if not allowed:
            raise forbidden()
        return allowed

    async def _speak(
        self,
        sock: socket.socket,
        protocol: Callable[[], asyncio.BaseProtocol],
        server_name: str | None,
    ) -> None:
        """Have the loop read and write a socket; in TLS where there is a name for it."""
        is_owned = False
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            await self._loop.create_connection(
                protocol,
                sock=sock,
                ssl=None if server_name is None else self._tls,
                server_hostname=None if server_name is None else server_name.rstrip("."),
            )
            is_owned = True
        finally:
            if not is_owned:
                sock.close()


def reach_of(way: Way | None) -> Reach:
    """Where an upstream may be."""
    return Reach.ANYWHERE if way is None else way.reach


def forbidden() -> TunnelError:
    """The error of an upstream that is where none may be."""
    return TunnelError(unsent(FaultKind.ADDRESS, "connect: the address is not allowed"))


def _default_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
