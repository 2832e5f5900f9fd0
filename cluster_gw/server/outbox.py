"""What is written to a connection leaves once a turn of the loop, beside that of all others (0022).

A write to a peer that sleeps wakes it, which on one machine costs the writer more than the bytes
do. Answers that leave one after the other find their reader awake.
"""

import asyncio
from collections.abc import Callable


class Outbox:
    """Bytes of one connection on their way to its socket, in order.

    Args:
        loop: the running loop.
        transport: of the connection.
        on_left: called whenever bytes have been handed to the transport.
    """

    __slots__ = ("_loop", "_on_left", "_transport", "_waiting")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: asyncio.Transport,
        on_left: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._on_left = on_left
        self._waiting: list[bytes] = []

    def add(self, data: bytes, *, at_once: bool = False) -> None:
        """Write in the next turn; or at once, where one more turn costs more than it saves."""
        self._waiting.append(data)
        if at_once:
            self.leave()
        elif len(self._waiting) == 1:
            self._loop.call_soon(self.leave)

    def leave(self) -> None:
        """Write what there is now; a peer that has gone gets nothing."""
        waiting = self._waiting
        if waiting:
            self._waiting = []
            if not self._transport.is_closing():
                if len(waiting) == 1:
                    self._transport.write(waiting[0])
                else:
                    self._transport.writelines(waiting)
                self._on_left()

    def close(self) -> None:
        """Write what there is, then close the connection as soon as the peer has taken it."""
        self.leave()
        self._transport.close()
        self._on_left()
