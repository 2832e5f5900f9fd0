"""Room 7's door to the network: the only place that opens an upstream connection.

It sends one call and gives the answer's head, or says exactly how far it came. It keeps no time:
the caller cancels when a phase took too long, and every cancellation closes the connection before
it leaves. It never repeats a request and follows no redirect: what a repeat costs is not known
here. Why the HTTP is our own: decision 0023.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import Final, final

import msgspec

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.upstream.connection import Connection
from cluster_gw.upstream.dialer import Dialer
from cluster_gw.upstream.faults import unsent
from cluster_gw.upstream.head import constant_head, request_head
from cluster_gw.upstream.origin import Place, parse_origin
from cluster_gw.upstream.pool import Pool, Reuse
from cluster_gw.upstream.proxy import Way
from cluster_gw.upstream.response import UpstreamResponse

_MAX_LINES: Final = 1_024

_OF_ONE_CALL: Final = "traceparent"
"""The last header of a call whose head is like no other's, and is not kept."""

_MAX_STALE: Final = 8
# A place whose connections keep holding bytes nobody asked for is a broken peer, not bad luck.


class UpstreamCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One POST, or a GET that costs nothing.

    Attributes:
        url: absolute http or https URL.
        headers: names and values; framing headers are ours and are dropped.
        body: the whole request body.
        connect_timeout_s: bound for name resolution, TCP and TLS together, in seconds, > 0.
        dispatch_before_s: monotonic instant; a connection that is ready only after it is kept in
            the pool and nothing is written.
        on_sent: called just before the first byte is handed to a connection.
        on_written: called when the socket has taken a body of `COALESCE_BYTES` or more; a smaller
            one is taken as a whole.
        way: how the upstream is reached, None for simply by itself.
        method: `POST` or `GET`.
    """

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    connect_timeout_s: float
    dispatch_before_s: float | None = None
    way: Way | None = None
    method: str = "POST"
    on_sent: Callable[[], None] | None = None
    on_written: Callable[[], None] | None = None

    def may_leave(self) -> bool:
        """Say whether it is still time, just before the first byte goes, and tell the caller."""
        # Not the loop's clock: it stands still during a turn, and a long turn makes us late.
        if self.dispatch_before_s is not None and time.monotonic() > self.dispatch_before_s:
            return False
        if self.on_sent is not None:
            self.on_sent()
        return True


@final
class DispatchLate(msgspec.Struct, frozen=True):
    """The connection was ready only after `dispatch_before_s`; nothing was sent."""


class _Line(msgspec.Struct, frozen=True):
    """What all calls with the same URL and headers share."""

    place: Place
    head: bytes


USUAL: Final = Reuse()
AGE_SPREAD: Final = 0.1
"""Of the greatest age, by how much connections end before it at most: those of one burst end apart,
and are not all opened anew at once."""

_LineKey = tuple[str, tuple[tuple[str, str], ...], Way | None, str]


class UpstreamClient:
    """A pool of connections to all upstreams of one worker.

    Args:
        reuse: how long a connection is used.
        tls: context for https; None is the default context with full verification.
        chance: draws from 0..1, below 1, once a connection; by default none is drawn.
    """

    def __init__(
        self,
        *,
        reuse: Reuse = USUAL,
        tls: ssl.SSLContext | None = None,
        chance: Callable[[], float] = float,
    ) -> None:
        self._reuse = reuse
        self._chance = chance
        self._tls = tls
        self._pool: Pool | None = None
        self._dialer: Dialer | None = None
        self._lines: dict[_LineKey, _Line] = {}

    async def start(self) -> None:
        """Creates the pool; must run on the loop that will make the calls."""
        self.open()

    def open(self) -> None:
        """The same, within that loop."""
        loop = asyncio.get_running_loop()
        self._pool = Pool(loop, self._reuse)
        self._dialer = Dialer(loop, self._tls, self._pool.give, self._head_start_s)

    def _head_start_s(self) -> float:
        return self._chance() * AGE_SPREAD * self._reuse.max_age_s

    def keep(self, reuse: Reuse) -> None:
        """Use connections that long from now on."""
        self._reuse = reuse
        if self._pool is not None:
            self._pool.reuse = reuse

    async def close(self) -> None:
        """Closes the pool. Calls must have ended: their owners cancel or close them first."""
        pool, dialer, self._pool, self._dialer = self._pool, self._dialer, None, None
        if pool is not None:
            pool.close()
        if dialer is not None:
            await dialer.close()
        await asyncio.sleep(0)  # sockets are closed in the turn after they were aborted

    async def post(self, call: UpstreamCall) -> UpstreamResponse | DispatchLate | Fault:
        """Sends the call and waits for the final status line and headers.

        Returns:
            The response with its body unread, whatever its status; `DispatchLate`; or a fault
            with `sent` NOT_SENT exactly when no byte was handed to a connection.
        """
        key = (call.url, call.headers, call.way, call.method)
        line = self._lines.get(key) or self._add_line(call, key)
        if type(line) is Fault:
            return line
        pool = self._pool
        if pool is None:
            return unsent(FaultKind.CONNECT, "connect: client is closed")
        for _ in range(_MAX_STALE):
            connection = pool.take(line.place) or await self._dial(line.place, call)
            if type(connection) is Fault:
                return connection
            if call.on_written is not None:
                connection.when_written(call.on_written)
            response = UpstreamResponse(connection)
            try:
                head = response.expect()
                connection.send(
                    response, request_head(line.head, len(call.body)), call.body, call.may_leave
                )
                await head
            except BaseException:
                response.close()
                raise
            if not response.is_unsent:
                break
            if response.fault is None:
                return DispatchLate()
        fault = response.fault
        return response if fault is None or response.status else fault

    def _add_line(self, call: UpstreamCall, key: _LineKey) -> _Line | Fault:
        origin = parse_origin(call.url, call.way, call.method)
        if origin is None:
            return unsent(FaultKind.CONNECT, "connect: url is not valid")
        head = constant_head(origin.head, call.headers)
        if head is None:
            return unsent(FaultKind.CREDENTIAL, "a request header cannot be sent")
        line = _Line(origin.place, head)
        if call.headers and call.headers[-1][0] == _OF_ONE_CALL:
            return line
        if len(self._lines) >= _MAX_LINES:
            self._lines.clear()
        self._lines[key] = line
        return line

    async def _dial(self, place: Place, call: UpstreamCall) -> Connection | Fault:
        for _ in range(_MAX_STALE):
            if self._dialer is None:
                return unsent(FaultKind.CONNECT, "connect: client is closed")
            connection = await self._dialer.dial(place, call.connect_timeout_s)
            if isinstance(connection, Fault) or connection.is_usable:
                return connection
        return unsent(FaultKind.CONNECT, "connect: peer spoils its connections")
