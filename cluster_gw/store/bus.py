"""Hears what scripts tell all workers: a connection of its own that does nothing but listen.

Redis forgets a message at once, also for whoever is just connecting. So each new subscription says
that something may have been missed, and the caller reads what it can find out otherwise.
"""

import asyncio
import contextlib
import math
import random
from collections.abc import Callable
from typing import Any, Final

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import NoPermissionError

from cluster_gw.errors import StoreLostError
from cluster_gw.store.address import Server
from cluster_gw.store.lane import disconnect, pack
from cluster_gw.store.link import BACKOFF_MAX_S, BACKOFF_MIN_S, NOBODY_KNOWS, fault_text
from cluster_gw.store.topology import ConnectionSource

PING_S: Final = 1.0
REFUSED_S: Final = 5.0
PING: Final[bytes] = pack(("PING",))


class Bus:
    """One subscription that is made anew whenever it is lost.

    Args:
        source: where connections come from.
        channel: what is listened to.
        deadline_s: how long the server may take to answer, above 0.
        on_message: called with each message.
        on_gap: called whenever messages may have been missed: after each subscription.

    Attributes:
        is_up: whether messages are being heard.
        reconnects: subscriptions after the first.
        fault: why the last one was lost or could not be made.
    """

    def __init__(
        self,
        source: ConnectionSource,
        channel: str,
        *,
        deadline_s: float,
        on_message: Callable[[bytes], None],
        on_gap: Callable[[], None],
    ) -> None:
        self.is_up = False
        self.reconnects = 0
        self.fault = ""
        self._source = source
        self._channel = channel
        self._deadline_s = deadline_s
        self._on_message = on_message
        self._on_gap = on_gap
        self._subscriptions = 0
        self._is_left = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._jitter = random.SystemRandom().random

    def start(self) -> None:
        """Begin to connect."""
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    def renew(self) -> None:
        """Leave this server and subscribe anew: it answers, but passes nothing on."""
        self._is_left.set()

    async def close(self) -> None:
        """Stop listening and close the connection."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        backoff_s = BACKOFF_MIN_S
        while True:
            heard_before = self._subscriptions
            try:
                await self._listen_once()
            except NoPermissionError as fault:  # only the operator can change that
                self.fault, backoff_s = fault_text(fault), REFUSED_S
            except Exception as fault:  # noqa: BLE001 - the boundary: any means "connect again"
                self.fault = fault_text(fault)
                backoff_s = min(backoff_s, BACKOFF_MAX_S)
            finally:
                self.is_up = False
            if self._subscriptions > heard_before:
                backoff_s = BACKOFF_MIN_S
            await asyncio.sleep(backoff_s * (0.5 + self._jitter() / 2))
            backoff_s = min(backoff_s * 2, max(backoff_s, BACKOFF_MAX_S))

    async def _listen_once(self) -> None:
        """Subscribe and hand messages on until the connection is lost, which is raised."""
        connection: AbstractConnection | None = None
        keeper: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(self._source.connect_s + self._deadline_s):
                server = await self._source.find()
                if server is None:
                    raise StoreLostError(NOBODY_KNOWS)
                connection = self._source.dial(server)
                await connection.connect()  # type: ignore[no-untyped-call]
                await _send(connection, pack(("SUBSCRIBE", self._channel)))
                await _read(connection)
            self._note_subscribed()
            keeper = asyncio.create_task(self._keep(connection, server))
            await self._hand_on(connection)
        finally:
            if keeper is not None:
                keeper.cancel()
                await asyncio.gather(keeper, return_exceptions=True)
            if connection is not None:
                await disconnect(connection)

    def _note_subscribed(self) -> None:
        self.reconnects += bool(self._subscriptions)
        self._subscriptions += 1
        self.is_up, self.fault = True, ""
        self._on_gap()

    async def _hand_on(self, connection: AbstractConnection) -> None:
        while True:
            # At least the answer to a PING comes within this time. A read that is cancelled leaves
            # a connection that cannot be used any more, and none is.
            async with asyncio.timeout(PING_S + self._deadline_s):
                reply = await _read(connection)
            match reply:
                case [b"message", _, bytes() as text]:
                    self._on_message(text)
                case _:
                    pass

    async def _keep(self, connection: AbstractConnection, server: Server) -> None:
        """Make the server answer, and give it up once another is the one to listen to."""
        looked_s = 0.0
        self._is_left.clear()
        while not self._is_left.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PING_S):
                    await self._is_left.wait()
            await _send(connection, PING)
            looked_s += PING_S
            if self._source.watch_s and looked_s >= self._source.watch_s:
                looked_s = 0.0
                found = await self._source.find()
                if found is not None and found != server:
                    break
        await disconnect(connection)


async def _send(connection: AbstractConnection, packed: bytes) -> None:
    if not connection.is_connected:
        raise StoreLostError("connection closed")  # a write now would reconnect silently
    await connection.send_packed_command(packed, check_health=False)


async def _read(connection: AbstractConnection) -> Any:  # a reply before it is looked at
    return await connection.read_response(disable_decoding=True, timeout=math.inf)
