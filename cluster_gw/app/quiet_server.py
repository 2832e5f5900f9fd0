"""The server of a worker: it leaves signals to its process, and loses nobody who is connected."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Generator
from typing import Final

import uvicorn

MOST_WAITING: Final = 4096  # more than a queue holds: somebody connects all the time
GO_AWAY: Final = (b"connection", b"close")


class QuietServer(uvicorn.Server):
    """A server whose process owns the signals."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.servers: list[asyncio.base_events.Server] = []  # uvicorn sets it when it has started
        self._is_away = False
        self._listener: socket.socket | None = None
        self._waiting: list[socket.socket] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the signals to the worker."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """As the base class, which writes the headers anew each second."""
        is_over = await super().on_tick(counter)
        if self._is_away:
            self.send_away(is_away=True)
        return is_over

    async def serve_on(self, listener: socket.socket) -> None:
        """Serve what connects to a listening socket until told to stop."""
        self._listener = listener
        await self.serve(sockets=[listener])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As the base class, which ends all connections; those that waited are served before."""
        loop = asyncio.get_running_loop()
        await asyncio.gather(
            *(loop.connect_accepted_socket(self._protocol, one) for one in self._waiting),
            return_exceptions=True,  # one that cannot be served must not keep the others waiting
        )
        await super().shutdown(sockets)

    def stop_accepting(self) -> None:
        """Close the listening sockets and ask clients to reconnect elsewhere, then end.

        Whoever is connected already and waits to be accepted would be reset, with the request that
        was sent and that nobody sends again.
        """
        self._accept_waiting()
        for server in self.servers:
            server.close()
        self.send_away(is_away=True)
        self.should_exit = True

    def _accept_waiting(self) -> None:
        if self._listener is None or self._listener.fileno() < 0:
            return
        with socket.socket(fileno=os.dup(self._listener.fileno())) as door:
            door.settimeout(0)
            with contextlib.suppress(OSError):  # as soon as nobody waits
                for _ in range(MOST_WAITING):
                    self._waiting.append(door.accept()[0])

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    def send_away(self, *, is_away: bool) -> None:
        """Ask clients to reconnect elsewhere with each answer, or not any more."""
        self._is_away = is_away
        # In place: connections hold this very list.
        held = self.server_state.default_headers
        held[:] = [header for header in held if header != GO_AWAY] + [GO_AWAY] * is_away
