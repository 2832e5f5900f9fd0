"""The Redis client of a worker: one lane, reopened in the background whenever it is lost.

Callers see values or two faults: `StoreLostError` when the outcome is unknown or Redis refused to
work, `ScriptContractError` when the call itself was wrong. No other exception passes this door.
While Redis is away a call fails at once, without waiting.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final

import hiredis

from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.lane import Lane, NotSentError, Reply, ScriptMissingError, disconnect
from cluster_gw.store.scripts import Script
from cluster_gw.store.topology import TLS_CONNECT_TIMEOUT_S, ConnectionSource, SingleServer

DEADLINE_S: Final = 0.7
MAX_PENDING: Final = 20_000
MAX_MISSES: Final = 3
BACKOFF_MIN_S: Final = 0.02
BACKOFF_MAX_S: Final = 0.25

Argument = bytes | str | int | float


class RedisClient:
    """Calls Redis for one worker.

    Args:
        url: `redis://`, `rediss://` or `unix://`.
        prefix: prefix of the key names; also names the connection in `CLIENT LIST`.
        deadline_s: the longest a call may take, above 0.
        max_pending: calls without a reply before further ones fail at once.
        source: gives connections instead of `url`, for other topologies.

    Attributes:
        lost: calls that ended with `StoreLostError`.
        reconnects: lanes opened after the first.

    Raises:
        ConfigInvalidError: the URL cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str,
        deadline_s: float = DEADLINE_S,
        max_pending: int = MAX_PENDING,
        source: ConnectionSource | None = None,
    ) -> None:
        self.prefix = prefix
        self.deadline_s = deadline_s
        self.lost = 0
        self.reconnects = 0
        self._source = source or SingleServer(url, name=prefix)
        self._max_pending = max_pending
        self._lane: Lane | None = None
        self._closed = False
        self._past_calls = 0
        self._past_flushes = 0
        self._was_up = False
        self._callbacks: list[Callable[[bool], None]] = []
        self._reconnecting: asyncio.Task[None] | None = None
        self._jitter = random.SystemRandom().random

    @property
    def is_up(self) -> bool:
        """Whether calls are being sent now."""
        return self._lane is not None and not self._lane.is_dead

    @property
    def calls(self) -> int:
        """Calls sent since the start."""
        return self._past_calls + (self._lane.calls if self._lane else 0)

    @property
    def flushes(self) -> int:
        """Writes made since the start; one carries all calls of a turn of the loop."""
        return self._past_flushes + (self._lane.flushes if self._lane else 0)

    @property
    def pending(self) -> int:
        """Calls that wait for a reply."""
        return self._lane.pending if self._lane else 0

    def on_change(self, callback: Callable[[bool], None]) -> None:
        """Have `callback(is_up)` called whenever the connection is gained or lost."""
        self._callbacks.append(callback)

    async def start(self, deadline_s: float) -> None:
        """Connect, trying again until `deadline_s`.

        Raises:
            StoreLostError: not connected in time. The client keeps trying in the background until
                it is closed.
        """
        self._reconnect_soon(first=True)
        until = asyncio.get_running_loop().time() + deadline_s
        while not self.is_up:
            left_s = until - asyncio.get_running_loop().time()
            if left_s <= 0 or self._reconnecting is None:
                raise StoreLostError("redis cannot be reached")
            await asyncio.wait({self._reconnecting}, timeout=left_s)

    async def close(self) -> None:
        """Stop reconnecting and close the connection; calls still waiting fail."""
        self._closed = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.gather(self._reconnecting, return_exceptions=True)
        if self._lane is not None:
            await self._lane.close()

    def submit(self, *args: Argument, lazy: bool = False) -> asyncio.Future[Reply]:
        """Queue a command without waiting: see `call`; the future carries the reply or fault."""
        lane = self._lane
        if lane is None or lane.is_dead:
            future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            future.set_exception(NotSentError("redis is away"))
        else:
            future = lane.submit(pack(args), lazy=lazy)
        future.add_done_callback(self._count_lost)
        return future

    def submit_script(
        self, script: Script, keys: Sequence[str], args: Sequence[Argument], *, lazy: bool = False
    ) -> asyncio.Future[Reply]:
        """Queue a script by its SHA-1; fails with `ScriptMissingError` when it must be loaded."""
        return self.submit("EVALSHA", script.sha, len(keys), *keys, *args, lazy=lazy)

    async def call(self, *args: Argument, lazy: bool = False) -> Reply:
        """Run a command.

        Args:
            args: the command and its arguments.
            lazy: whether it may wait up to 2 ms for company.

        Returns:
            The reply: bytes, int, None, or lists of these.

        Raises:
            StoreLostError: no reply in time, or Redis refused to work; it may have been applied.
            ScriptContractError: Redis called the command wrong.
        """
        return await self.submit(*args, lazy=lazy)

    async def run(
        self, script: Script, keys: Sequence[str], args: Sequence[Argument], *, lazy: bool = False
    ) -> list[Reply]:
        """Run a script, loading it first when the server does not know it.

        Returns:
            The reply, always a list.

        Raises:
            StoreLostError: see `call`.
            ScriptContractError: the script refused its arguments, or did not answer a list.
        """
        try:
            reply = await self.submit_script(script, keys, args, lazy=lazy)
        except ScriptMissingError:
            # Both leave in one write, and one connection keeps their order.
            load = self.submit("SCRIPT", "LOAD", script.text)
            again = self.submit_script(script, keys, args)
            await load
            reply = await again
        if not isinstance(reply, list):
            raise ScriptContractError(f"{script.name} did not answer a list")
        return reply

    def _count_lost(self, future: asyncio.Future[Reply]) -> None:
        if not future.cancelled() and isinstance(future.exception(), StoreLostError):
            self.lost += 1

    def _lane_died(self, lane: Lane) -> None:
        if lane is self._lane:
            self._tell()
            self._reconnect_soon()

    def _tell(self) -> None:
        if self.is_up == self._was_up:
            return
        self._was_up = self.is_up
        for callback in self._callbacks:
            callback(self._was_up)

    def _reconnect_soon(self, *, first: bool = False) -> None:
        idle = self._reconnecting is None or self._reconnecting.done()
        if idle and not self._closed:
            loop = asyncio.get_running_loop()
            self._reconnecting = loop.create_task(self._reconnect(first=first))

    async def _reconnect(self, *, first: bool) -> None:
        if self._lane is not None:
            await self._lane.close()
        backoff_s = BACKOFF_MIN_S
        while True:
            lane = await self._open()
            if lane is not None and not lane.is_dead:
                break
            await asyncio.sleep(backoff_s * (0.5 + self._jitter() / 2))
            backoff_s = min(backoff_s * 2, BACKOFF_MAX_S)
        if self._lane is not None:
            self._past_calls += self._lane.calls
            self._past_flushes += self._lane.flushes
        self._lane = lane
        self.reconnects += not first
        self._tell()

    async def _open(self) -> Lane | None:
        """Connect and prove with a PING that the server works: a frozen one accepts, too."""
        connection = self._source.make()
        lane: Lane | None = None
        try:
            async with asyncio.timeout(TLS_CONNECT_TIMEOUT_S + self.deadline_s):
                await connection.connect()  # type: ignore[no-untyped-call]
                lane = Lane(
                    connection,
                    deadline_s=self.deadline_s,
                    max_pending=self._max_pending,
                    max_misses=MAX_MISSES,
                    on_death=self._lane_died,
                )
                await lane.submit(pack(("PING",)))
        except Exception:  # noqa: BLE001 - the boundary: any fault means "not connected yet"
            await (lane.close() if lane else disconnect(connection))
            return None
        except asyncio.CancelledError:
            await (lane.close() if lane else disconnect(connection))
            raise
        return lane


def pack(args: Sequence[Argument]) -> bytes:
    """Encode a command in Redis' protocol."""
    packed: bytes = hiredis.pack_command(tuple(args))  # type: ignore[arg-type] # its stub: 1-tuples
    return packed
