"""Room 7's door to the network: the only place that opens an upstream connection.

It sends one POST and gives the answer's head, or says exactly how far it came. It keeps no time:
the caller cancels when a phase took too long, and every cancellation closes the connection before
it leaves. It never repeats a request and follows no redirect: what a repeat costs is not known
here. Proxies of the environment are not used.
"""

import asyncio
import ssl
import time
from collections.abc import Callable

import msgspec
from aiohttp import ClientRequest, ClientTimeout
from aiohttp.connector import Connection
from aiohttp.http_parser import RawResponseMessage
from aiohttp.streams import StreamReader
from yarl import URL

from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.upstream.connector import PooledConnector, is_public_peer
from cluster_gw.upstream.faults import CONNECT_ERRORS, EXCHANGE_ERRORS, connect_fault, head_fault
from cluster_gw.upstream.head import origin_head, request_head
from cluster_gw.upstream.response import UpstreamResponse, abort

_MAX_LINE_BYTES = 16_384
_MAX_FIELD_BYTES = 65_536
_MAX_FIELDS = 256
# Vendors answer with about 20 headers; the bounds only keep a hostile peer from filling memory.

_COALESCE_BYTES = 65_536
# Below this size head and body leave in one write; above it the copy would cost more than a call.

_MAX_ORIGINS = 1_024
_SWITCHING_PROTOCOLS = 101
_FIRST_FINAL_STATUS = 200

_MAX_STALE = 8
# A pool whose connections keep holding bytes nobody asked for is a broken peer, not bad luck.


class UpstreamCall(msgspec.Struct, frozen=True, kw_only=True):
    """One POST.

    Attributes:
        url: absolute http or https URL.
        headers: names and values; framing headers are ours and are dropped.
        body: the whole request body.
        connect_timeout_s: bound for name resolution, TCP and TLS together, in seconds, > 0.
        dispatch_before_s: monotonic instant; a connection that is ready only after it is kept in
            the pool and nothing is written.
        on_sent: called just before the first byte is handed to a connection.
        public_only: refuse a peer whose connected address is loopback, private or local.
    """

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    connect_timeout_s: float
    dispatch_before_s: float | None = None
    public_only: bool = False
    on_sent: Callable[[], None] | None = None


class DispatchLate(msgspec.Struct, frozen=True):
    """The connection was ready only after `dispatch_before_s`; nothing was sent."""


class _Origin(msgspec.Struct, frozen=True):
    """What one URL needs for every call: the connector's request object and the first lines."""

    request: ClientRequest
    head: str


class UpstreamClient:
    """A pool of connections to all upstreams of one worker.

    Args:
        keepalive_s: seconds an idle connection is kept.
        tls: context for https; None is the default context with full verification.
    """

    def __init__(self, *, keepalive_s: float = 30.0, tls: ssl.SSLContext | None = None) -> None:
        self._keepalive_s = keepalive_s
        self._tls = tls
        self._connector: PooledConnector | None = None
        self._origins: dict[str, _Origin] = {}
        self._timeouts: dict[float, ClientTimeout] = {}

    async def start(self) -> None:
        """Creates the pool; must run on the loop that will make the calls."""
        self._loop = asyncio.get_running_loop()
        self._connector = PooledConnector(self._keepalive_s, self._tls)

    async def close(self) -> None:
        """Closes the pool. Calls must have ended: their owners cancel or close them first."""
        if self._connector is not None:
            await self._connector.close(abort_ssl=True)
            self._connector = None

    async def post(self, call: UpstreamCall) -> UpstreamResponse | DispatchLate | Fault:
        """Sends the call and waits for the final status line and headers.

        Returns:
            The response with its body unread, whatever its status; `DispatchLate`; or a fault
            with `sent` NOT_SENT exactly when no byte was handed to a connection.
        """
        origin = self._origins.get(call.url) or self._add_origin(call.url)
        if isinstance(origin, Fault):
            return origin
        head = request_head(origin.head, call.headers, len(call.body))
        if head is None:
            return _unsent(FaultKind.CREDENTIAL, "a request header cannot be sent")
        connection = await self._connect(origin, call)
        if isinstance(connection, Fault):
            return connection
        # Not the loop's clock: it stands still during a turn, and a long turn makes us late.
        if call.dispatch_before_s is not None and time.monotonic() > call.dispatch_before_s:
            connection.release()
            return DispatchLate()
        if call.on_sent is not None:
            call.on_sent()
        return await _exchange(connection, head, call.body)

    def _add_origin(self, text: str) -> _Origin | Fault:
        try:
            url = URL(text)
            request = ClientRequest("POST", url, loop=self._loop)
        except ValueError:
            return _unsent(FaultKind.CONNECT, "connect: url is not valid")
        if url.scheme not in {"http", "https"} or not url.raw_host:
            return _unsent(FaultKind.CONNECT, "connect: url is not http")
        if len(self._origins) >= _MAX_ORIGINS:
            self._origins.clear()
        origin = _Origin(request, origin_head(url.raw_path_qs, url.host_port_subcomponent or ""))
        self._origins[text] = origin
        return origin

    async def _connect(self, origin: _Origin, call: UpstreamCall) -> Connection | Fault:
        connector = self._connector
        if connector is None:
            return _unsent(FaultKind.CONNECT, "connect: client is closed")
        timeout = self._timeout(call.connect_timeout_s)
        for _ in range(_MAX_STALE):
            try:
                connection = await connector.connect(origin.request, traces=[], timeout=timeout)
            except CONNECT_ERRORS as exc:
                return connect_fault(exc)
            protocol = connection.protocol
            if protocol is None or protocol.should_close or not protocol.is_connected():
                # It holds an answer nobody asked for (it would be read as ours), or it is gone.
                abort(connection)
                continue
            if call.public_only and not is_public_peer(connection):
                abort(connection)
                return _unsent(FaultKind.CONNECT, "connect: address is not public")
            return connection
        return _unsent(FaultKind.CONNECT, "connect: peer spoils its connections")

    def _timeout(self, connect_s: float) -> ClientTimeout:
        known = self._timeouts.get(connect_s)
        if known is None:
            if len(self._timeouts) >= _MAX_ORIGINS:
                self._timeouts.clear()
            known = ClientTimeout(connect=connect_s, ceil_threshold=connect_s + 1.0)
            self._timeouts[connect_s] = known
        return known


async def _exchange(connection: Connection, head: bytes, body: bytes) -> UpstreamResponse | Fault:
    """Writes the request and reads the final answer head, on a connection that is ready."""
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None:
        return _unsent(FaultKind.CONNECT, "connect: connection lost")
    protocol.set_response_params(
        read_until_eof=True,
        auto_decompress=False,
        max_line_size=_MAX_LINE_BYTES,
        max_field_size=_MAX_FIELD_BYTES,
        max_headers=_MAX_FIELDS,
    )
    try:
        if len(body) < _COALESCE_BYTES:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        message, payload = await protocol.read()
        while message.code < _FIRST_FINAL_STATUS and message.code != _SWITCHING_PROTOCOLS:
            message, payload = await protocol.read()
        return _answer(connection, message, payload)
    except EXCHANGE_ERRORS as exc:
        abort(connection)
        return head_fault(exc)
    except BaseException:
        abort(connection)
        raise


def _answer(
    connection: Connection, message: RawResponseMessage, payload: StreamReader
) -> UpstreamResponse | Fault:
    if message.code == _SWITCHING_PROTOCOLS:
        abort(connection)
        return Fault(kind=FaultKind.MALFORMED, message="answer switches protocols")
    return UpstreamResponse(connection, message, payload)


def _unsent(kind: FaultKind, message: str) -> Fault:
    return Fault(kind=kind, sent=Sent.NOT_SENT, message=message)
