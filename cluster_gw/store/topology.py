"""Where a Redis connection comes from: a fixed server, or the master that Sentinels name.

`ConnectionSource` is the seam between a link and redis-py. redis-py's own Sentinel pool is not
used: it asks one Sentinel after the other, with retries, and believes the first (decision 0017).
"""

import asyncio
import random
from collections import Counter, deque
from collections.abc import Coroutine, Hashable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

from redis.asyncio.connection import (
    AbstractConnection,
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from cluster_gw.store.address import Address, Login, Server, Tls
from cluster_gw.store.lane import Argument, Reply, disconnect, pack

CONNECT_TIMEOUT_S: Final = 0.25
TLS_CONNECT_TIMEOUT_S: Final = 2.0  # a handshake alone was measured at 19 ms on an idle machine
ASK_S: Final = 0.25
SENTINEL_WATCH_S: Final = 5.0

Answer = TypeVar("Answer", bound=Hashable)


class ConnectionSource(Protocol):
    """Tells which server should be used now, and gives connections to it.

    Attributes:
        connect_s: how long finding and connecting may take.
        watch_s: how often it should be asked whether the server is still the right one; 0: never.
    """

    connect_s: float
    watch_s: float

    async def find(self) -> Server | None:
        """Tell the server to use now; None when nobody knows."""
        ...

    def dial(self, server: Server) -> AbstractConnection:
        """Give a new, closed connection to a server."""
        ...


class Abrupt(AbstractConnection):
    """Is closed when `disconnect` returns, whatever the server does and whoever is cancelled.

    asyncio would first send what is buffered and, with TLS, wait up to 30 s for the server's
    farewell. A server that hangs would keep the socket, and a loop that ends leaves it behind.
    """

    async def disconnect(self, *args: Any, **named: Any) -> None:
        """Drop what is buffered and close."""
        if self._writer is not None:
            self._writer.transport.abort()
        await super().disconnect(*args, **named)


class UnixConnection(Abrupt, UnixDomainSocketConnection):
    """To a socket of this machine."""


class TcpConnection(Abrupt, Connection):
    """In the clear."""


class TlsConnection(Abrupt, SSLConnection):
    """With TLS, agreed on over a connection that is already ours.

    When asyncio makes both at once, a dial that is cancelled as the handshake ends leaves a
    connection that says farewell to the server in its own time, and nobody holds it.
    """

    async def _connect(self) -> None:
        context = self.ssl_context.get()  # reads files, so a missing one costs no connection
        async with asyncio.timeout(self.socket_connect_timeout):
            await super()._connect()  # type: ignore[no-untyped-call]
            writer: asyncio.StreamWriter = self._writer  # type: ignore[assignment] # just made
            try:
                await writer.start_tls(context, server_hostname=self.host)
            except BaseException:
                writer.transport.abort()
                self._reader = self._writer = None
                raise

    def _connection_arguments(self) -> dict[str, Any]:
        return {"host": self.host, "port": self.port}  # without TLS, which follows


class Dialer:
    """Makes connections that differ only in their server.

    Args:
        login: as whom.
        tls: None without TLS.
        database: selected on every connection.
        name: shown in `CLIENT LIST`; empty for none.
    """

    def __init__(self, *, login: Login, tls: Tls | None, database: int = 0, name: str = "") -> None:
        self.connect_s = CONNECT_TIMEOUT_S if tls is None else TLS_CONNECT_TIMEOUT_S
        self._tls = tls
        self._options: dict[str, Any] = {  # redis-py takes its settings untyped
            "protocol": 2,  # RESP3 adds a maintenance handshake to each connection
            "db": database,
            "username": login.user,
            "password": login.password,
            "client_name": name or None,
            "driver_info": None,  # saves a round trip, and a right to CLIENT SETINFO
            # The lane has its own deadlines; a socket timeout would close an idle connection.
            "socket_timeout": None,
            "socket_connect_timeout": self.connect_s,
            "health_check_interval": 0,
            "retry": Retry(NoBackoff(), 0),  # the link reconnects with its own backoff
        }

    def to(self, server: Server) -> AbstractConnection:
        """Give a new, closed connection."""
        if not server.port:
            return UnixConnection(path=server.host, **self._options)
        place: dict[str, Any] = {"host": server.host, "port": server.port}
        place["socket_keepalive"] = True
        if self._tls is None:
            return TcpConnection(**place, **self._options)
        return TlsConnection(
            ssl_ca_certs=self._tls.ca_file,
            ssl_certfile=self._tls.cert_file,
            ssl_keyfile=self._tls.key_file,
            ssl_cert_reqs="required" if self._tls.is_verified else "none",
            ssl_check_hostname=self._tls.checks_host,
            **place,
            **self._options,
        )

    async def ask(self, server: Server, *command: Argument) -> Reply | None:
        """Send one command on a connection of its own; None for any fault or silence."""
        connection = self.to(server)
        try:
            async with asyncio.timeout(self.connect_s + ASK_S):
                await connection.connect()  # type: ignore[no-untyped-call]
                await connection.send_packed_command(pack(command), check_health=False)
                return await connection.read_response(disable_decoding=True)
        except Exception:  # noqa: BLE001 - the boundary: whatever went wrong, there is no answer
            return None
        finally:
            await disconnect(connection)


class FixedServer:
    """The one server of a `redis://`, `rediss://` or `unix://` URL, or one node of a cluster."""

    watch_s = 0.0

    def __init__(self, dialer: Dialer, server: Server) -> None:
        self.connect_s = dialer.connect_s
        self._dialer = dialer
        self._server = server

    async def find(self) -> Server | None:
        """Tell the server."""
        return self._server

    def dial(self, server: Server) -> AbstractConnection:
        """Give a new, closed connection."""
        return self._dialer.to(server)


class AnyNode:
    """One of the nodes of a cluster, another one each time."""

    watch_s = 0.0

    def __init__(self, dialer: Dialer, servers: Sequence[Server]) -> None:
        self.connect_s = dialer.connect_s
        self._dialer = dialer
        # In an order of its own: not all workers shall listen to the same node.
        self._servers = deque(random.SystemRandom().sample(servers, len(servers)))

    async def find(self) -> Server | None:
        """Tell the node whose turn it is."""
        self._servers.rotate(-1)
        return self._servers[0]

    def dial(self, server: Server) -> AbstractConnection:
        """Give a new, closed connection."""
        return self._dialer.to(server)


class SentinelMaster:
    """Whichever server most of the answering Sentinels call the master of a service."""

    watch_s = SENTINEL_WATCH_S

    def __init__(self, address: Address, dialer: Dialer) -> None:
        self.connect_s = 2 * dialer.connect_s + ASK_S
        self._dialer = dialer
        self._sentinels = Dialer(login=address.sentinel_login, tls=address.tls)
        self._servers = address.servers
        self._service = address.service

    async def find(self) -> Server | None:
        """Ask all Sentinels at once."""
        answers = await gather_within(
            (self._ask(sentinel) for sentinel in self._servers), self._dialer.connect_s + ASK_S
        )
        return majority(answers)

    def dial(self, server: Server) -> AbstractConnection:
        """Give a new, closed connection."""
        return self._dialer.to(server)

    async def _ask(self, sentinel: Server) -> Server | None:
        reply = await self._sentinels.ask(
            sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service
        )
        match reply:
            case [bytes() as host, bytes() as port] if port.isdigit():
                return Server(host.decode(errors="replace"), int(port))
            case _:
                return None


async def gather_within(
    asks: Iterable[Coroutine[Any, Any, Answer | None]], within_s: float
) -> Sequence[Answer]:
    """Give the answers that came in time; silence and None count as none."""
    tasks = [asyncio.ensure_future(ask) for ask in asks]
    if not tasks:
        return []
    try:
        done, _ = await asyncio.wait(tasks, timeout=within_s)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # they close their connections
    answers = [task.result() for task in done]
    return [answer for answer in answers if answer is not None]


def majority(answers: Sequence[Answer]) -> Answer | None:
    """Give the most frequent answer; None when there is none."""
    return Counter(answers).most_common(1)[0][0] if answers else None


def source_of(address: Address, dialer: Dialer) -> ConnectionSource:
    """Give where the connections of an address come from."""
    if address.kind == "cluster":
        return AnyNode(dialer, address.servers)
    if address.kind == "sentinel":
        return SentinelMaster(address, dialer)
    return FixedServer(dialer, address.servers[0])
