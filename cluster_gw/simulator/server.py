"""Starts a simulated provider: inside a running loop for tests, or as a process of its own."""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from cluster_gw.simulator.config import SimulatorConfig
from cluster_gw.simulator.connection import Connection
from cluster_gw.simulator.provider import Clock, Provider
from cluster_gw.wire.host_port import host_port

if sys.platform != "win32":
    import uvloop

PARENT_POLL_S: Final = 0.25
BACKLOG: Final = 4096


class RunningSimulator:
    """A simulated provider that listens; `close` ends it and every connection."""

    def __init__(
        self, provider: Provider, servers: Sequence[asyncio.Server], connections: set[Connection]
    ) -> None:
        self._provider = provider
        self._servers = servers
        self._connections = connections
        self.host, self.port = servers[0].sockets[0].getsockname()[:2]

    @property
    def base_url(self) -> str:
        """Where clients find it, `/v1` included."""
        return f"http://{host_port(self.host, self.port)}/v1"

    @property
    def connection_count(self) -> int:
        """Clients that are connected now."""
        return len(self._connections)

    @property
    def provider(self) -> Provider:
        """The provider itself, to script faults and read books without HTTP."""
        return self._provider

    def stats(self) -> dict[str, Any]:
        """The same as `GET /stats`."""
        return self._provider.stats()

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        for server in self._servers:
            server.close()
        abandoned = tuple(self._connections)
        for connection in abandoned:
            connection.abandon()
        await asyncio.gather(*(connection.lost.wait() for connection in abandoned))
        for server in self._servers:
            await server.wait_closed()


async def serve_simulator(
    config: SimulatorConfig,
    *,
    sockets: Sequence[socket.socket] | None = None,
    clock: Clock = time.monotonic,
    unix_clock: Clock = time.time,
) -> RunningSimulator:
    """Start a simulated provider in the running event loop.

    Args:
        config: what it is.
        sockets: listening sockets to use instead of `config.host` and `config.port`.
        clock: seconds that only grow; all limits are judged by it.
        unix_clock: seconds since 1970, for the `created` of answers.

    Raises:
        OSError: the address cannot be bound.
    """
    provider = Provider(config, clock, unix_clock)
    connections: set[Connection] = set()

    def connect() -> Connection:
        return Connection(provider.serve, config.max_body_bytes, connections)

    loop = asyncio.get_running_loop()
    if sockets:
        servers = [
            await loop.create_server(connect, sock=each, backlog=BACKLOG) for each in sockets
        ]
    else:
        servers = [await loop.create_server(connect, config.host, config.port, backlog=BACKLOG)]
    return RunningSimulator(provider, servers, connections)


def run_simulator(
    config: SimulatorConfig,
    *,
    expected_parent: int | None = None,
    on_ready: Callable[[RunningSimulator], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, or until the parent process is gone; then return.

    Args:
        config: what the provider is.
        expected_parent: process id of the parent to live as long as; `None` watches nobody.
        on_ready: called once when clients can connect.

    Raises:
        OSError: the address cannot be bound.
    """
    loop_factory = None if sys.platform == "win32" else uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(_run(config, expected_parent, on_ready))


async def _run(
    config: SimulatorConfig,
    expected_parent: int | None,
    on_ready: Callable[[RunningSimulator], None] | None,
) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    running = await serve_simulator(config)
    if on_ready is not None:
        on_ready(running)
    while not stopped.is_set() and expected_parent in {None, os.getppid()}:
        try:
            await asyncio.wait_for(stopped.wait(), PARENT_POLL_S)
        except TimeoutError:
            continue
    await running.close()
