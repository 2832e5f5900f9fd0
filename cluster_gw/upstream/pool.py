"""Connections that wait for their next request, newest first, and the clock that ends them.

There is no bound on their number: admission has already decided how many calls may run.
"""

import asyncio

from cluster_gw.upstream.connection import Connection
from cluster_gw.upstream.origin import Place


class Pool:
    """Idle connections of one worker, by place.

    Args:
        loop: the running loop.
        keepalive_s: seconds an idle connection stays usable.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, keepalive_s: float) -> None:
        self._loop = loop
        self._keepalive_s = keepalive_s
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
            if self._loop.time() - connection.idle_since_s <= self._keepalive_s:
                return connection
            connection.abort()
        return None

    def give(self, connection: Connection) -> None:
        """Keeps a connection that is free."""
        if self._is_closed:
            connection.abort()
            return
        connection.idle_since_s = self._loop.time()
        stack = self._idle.get(connection.place)
        if stack is None:
            stack = self._idle[connection.place] = []
        stack.append(connection)
        if self._timer is None:
            self._timer = self._loop.call_later(self._keepalive_s, self._sweep)

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
        now_s = self._loop.time()
        oldest_s = now_s
        for place, stack in list(self._idle.items()):
            kept = [one for one in stack if one.is_usable]
            expired = 0
            while expired < len(kept) and now_s - kept[expired].idle_since_s >= self._keepalive_s:
                kept[expired].abort()
                expired += 1
            stack[:] = kept[expired:]
            if stack:
                oldest_s = min(oldest_s, stack[0].idle_since_s)
            else:
                del self._idle[place]
        if self._idle:
            # Not for each connection: under load hundreds fall idle one after the other.
            wait_s = max(oldest_s + self._keepalive_s - now_s, self._keepalive_s / 4)
            self._timer = self._loop.call_later(wait_s, self._sweep)
