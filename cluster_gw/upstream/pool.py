"""Connections that wait for their next request, newest first, and the clock that ends them.

There is no bound on their number: admission has already decided how many calls may run.
"""

import asyncio

import msgspec

from cluster_gw.upstream.connection import Connection
from cluster_gw.upstream.origin import Place


class Reuse(msgspec.Struct, frozen=True, kw_only=True):
    """How long a connection is used; what is under way on it is never cut.

    A peer that closes connections after so many requests or minutes may do so just when the next
    request leaves, and nobody knows then whether it was read. So we are first.

    Attributes:
        keepalive_s: seconds it may wait for its next request.
        max_requests: requests it carries.
        max_age_s: seconds after which it carries no further one.
    """

    keepalive_s: float = 30.0
    max_requests: int = 1000
    max_age_s: float = 600.0


class Pool:
    """Idle connections of one worker, by place.

    Args:
        loop: the running loop.
        reuse: how long a connection is used.

    Attributes:
        reuse: the same; another one holds from then on.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, reuse: Reuse) -> None:
        self._loop = loop
        self.reuse = reuse
        self._idle: dict[Place, list[Connection]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def idle_count(self) -> int:
        """How many connections wait, those included that the peer has closed meanwhile."""
        return sum(map(len, self._idle.values()))

    def take(self, place: Place) -> Connection | None:
        """The connection that was used last, if one is still good."""
        stack = self._idle.get(place)
        while stack:
            connection = stack.pop()
            if not connection.is_usable:
                continue
            now_s, reuse = self._loop.time(), self.reuse
            if (
                now_s - connection.idle_since_s <= reuse.keepalive_s
                and now_s - connection.born_s < reuse.max_age_s
            ):
                return connection
            connection.abort()
        return None

    def give(self, connection: Connection) -> None:
        """Keeps a connection that is free."""
        connection.uses += 1
        if self._is_closed or connection.uses >= self.reuse.max_requests:
            connection.abort()
            return
        connection.idle_since_s = self._loop.time()
        stack = self._idle.get(connection.place)
        if stack is None:
            stack = self._idle[connection.place] = []
        stack.append(connection)
        if self._timer is None:
            self._timer = self._loop.call_later(self.reuse.keepalive_s, self._sweep)

    def close(self) -> None:
        """Closes every idle connection; those in use are closed when they are given back."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for stack in self._idle.values():
            for connection in stack:
                connection.abort()
        self._idle.clear()

    def _sweep(self) -> None:
        """Closes what waited too long, and looks again when the next one will have."""
        self._timer = None
        now_s, keepalive_s = self._loop.time(), self.reuse.keepalive_s
        oldest_s = now_s
        for place, stack in list(self._idle.items()):
            kept = [one for one in stack if one.is_usable]
            expired = 0
            while expired < len(kept) and now_s - kept[expired].idle_since_s >= keepalive_s:
                kept[expired].abort()
                expired += 1
            stack[:] = kept[expired:]
            if stack:
                oldest_s = min(oldest_s, stack[0].idle_since_s)
            else:
                del self._idle[place]
        if self._idle:
            # Not for each connection: under load hundreds fall idle one after the other.
            wait_s = max(oldest_s + keepalive_s - now_s, keepalive_s / 4)
            self._timer = self._loop.call_later(wait_s, self._sweep)
