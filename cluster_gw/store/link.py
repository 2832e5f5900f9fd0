"""A lane to one server that is opened again in the background whenever it is lost."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from typing import Final

from redis.asyncio.connection import AbstractConnection

from cluster_gw.errors import StoreLostError
from cluster_gw.store.address import Server
from cluster_gw.store.lane import (
    SLOW,
    Argument,
    Call,
    Lane,
    Listener,
    disconnect,
    pack,
)
from cluster_gw.store.replies import Redirect
from cluster_gw.store.topology import ConnectionSource

MAX_MISSES: Final = 3
BACKOFF_MIN_S: Final = 0.02
BACKOFF_MAX_S: Final = 0.25
EAGER_S: Final = 0.25  # so long tries follow each other closely, for whoever waits a loss out
EAGER_BACKOFF_S: Final = 0.05
LOOK_AGAIN_S: Final = 0.25
NOT_A_MASTER: Final = frozenset({b"slave", b"sentinel"})
NO_MASTER: Final = "the server is not a master"
NOBODY_KNOWS: Final = "no Sentinel names a master"


class Link:
    """Keeps one lane open.

    Args:
        source: where connections come from.
        deadline_s: the longest a call may take.
        max_pending: calls without a reply before further ones fail at once.
        on_change: called whenever the lane is gained or lost.
        on_trouble: called with the code of an error reply that means "not now", `DEADLINE` or
            `SLOW`.
        on_redirect: takes calls that another node of a cluster must have.

    Attributes:
        lane: None before the first connection.
        server: whom it is, or was last, connected to.
        reconnects: lanes opened after the first.
        fault: why the last lane was lost or could not be opened.
    """

    def __init__(
        self,
        source: ConnectionSource,
        *,
        deadline_s: float,
        max_pending: int,
        on_change: Callable[[], None],
        on_trouble: Callable[[str], None] | None = None,
        on_redirect: Callable[["Link", Redirect, Call], None] | None = None,
    ) -> None:
        self.lane: Lane | None = None
        self.server: Server | None = None
        self.reconnects = 0
        self.fault = ""
        self._source = source
        self._deadline_s = deadline_s
        self._max_pending = max_pending
        self._on_change = on_change
        self._on_trouble = on_trouble
        self._on_redirect = on_redirect
        self._closed = False
        self._past_calls = 0
        self._past_flushes = 0
        self._doubts = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._jitter = random.SystemRandom().random

    @property
    def is_up(self) -> bool:
        """Whether calls are being sent now."""
        return self.lane is not None and not self.lane.is_dead

    @property
    def is_cut_off(self) -> bool:
        """The same as not being up: there is nobody else to talk to."""
        return not self.is_up

    @property
    def calls(self) -> int:
        """Calls sent since the start."""
        return self._past_calls + (self.lane.calls if self.lane else 0)

    @property
    def flushes(self) -> int:
        """Writes made since the start."""
        return self._past_flushes + (self.lane.flushes if self.lane else 0)

    @property
    def pending(self) -> int:
        """Calls that wait for a reply."""
        return self.lane.pending if self.lane else 0

    def lane_for(self, _args: Sequence[Argument]) -> Lane | None:
        """Give the lane, dead or alive; None before the first connection."""
        return self.lane

    def live_lanes(self) -> list[Lane]:
        """Give the lane if it is alive."""
        return [self.lane] if self.lane is not None and not self.lane.is_dead else []

    def start(self) -> None:
        """Begin to connect."""
        self._open_soon()
        if self._source.watch_s and self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def close(self) -> None:
        """Stop reconnecting and close the connection; calls still waiting fail."""
        self._closed = True
        tasks = [task for task in (self._opening, self._watching) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.lane is not None:
            await self.lane.close()

    def _open_soon(self) -> None:
        idle = self._opening is None or self._opening.done()
        if idle and not self._closed:
            self._opening = asyncio.get_running_loop().create_task(self._reopen())

    async def _reopen(self) -> None:
        if self.lane is not None:
            await self.lane.close()
        backoff_s, clock_s = BACKOFF_MIN_S, asyncio.get_running_loop().time
        begun_s = clock_s()
        while True:
            lane = await self._open()
            if lane is not None and not lane.is_dead:
                break
            await asyncio.sleep(backoff_s * (0.5 + self._jitter() / 2))
            backoff_s = longer_backoff_s(backoff_s, clock_s() - begun_s)
        if self.lane is not None:
            self.reconnects += 1
            self._past_calls += self.lane.calls
            self._past_flushes += self.lane.flushes
        self.lane = lane
        self._on_change()

    async def _open(self) -> Lane | None:
        """Connect and make sure that the server works: a frozen one accepts connections, too."""
        connection: AbstractConnection | None = None
        lane: Lane | None = None
        opened = False
        try:
            async with asyncio.timeout(self._source.connect_s + self._deadline_s):
                server = await self._source.find()
                if server is None:
                    self.fault = NOBODY_KNOWS
                    return None
                connection = self._source.dial(server)
                await connection.connect()  # type: ignore[no-untyped-call]
                lane = self._lane_on(connection)
                self.server = server
                self.fault = await _flaw_of(lane)
                opened = not self.fault
        except Exception as fault:  # noqa: BLE001 - the boundary: any means "not connected yet"
            self.fault = fault_text(fault)
            return None
        finally:
            if not opened:
                await _end(lane, connection)
        return lane if opened else None

    def _lane_on(self, connection: AbstractConnection) -> Lane:
        return Lane(
            connection,
            deadline_s=self._deadline_s,
            max_pending=self._max_pending,
            max_misses=MAX_MISSES,
            listener=Listener(
                on_death=self._lane_died,
                on_trouble=self._trouble,
                on_redirect=self._redirect if self._on_redirect is not None else None,
            ),
        )

    def _lane_died(self, lane: Lane) -> None:
        if lane is self.lane:
            self.fault = lane.death
            self._on_change()
            self._open_soon()

    def _trouble(self, code: str) -> None:
        if code != SLOW:
            self._doubts.set()
        if self._on_trouble is not None:
            self._on_trouble(code)

    def _redirect(self, _lane: Lane, redirect: Redirect, call: Call) -> None:
        if self._on_redirect is not None:
            self._on_redirect(self, redirect, call)

    async def _watch(self) -> None:
        """Give up a lane whose server is no longer the one to use, though it still answers."""
        while True:
            await asyncio.sleep(LOOK_AGAIN_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._source.watch_s):
                    await self._doubts.wait()
            self._doubts.clear()
            server = await self._source.find()
            if self.lane is not None and server is not None and server != self.server:
                self.lane.kill("another server is the master now")


def longer_backoff_s(backoff_s: float, tried_for_s: float) -> float:
    """The longest pause before the next try.

    Args:
        backoff_s: that before this one.
        tried_for_s: since the loss.
    """
    return min(backoff_s * 2, EAGER_BACKOFF_S if tried_for_s < EAGER_S else BACKOFF_MAX_S)


async def _flaw_of(lane: Lane) -> str:
    """Tell why a server cannot be used: it does not work, or is not a master; empty if it can."""
    pong, role = await asyncio.gather(
        lane.submit(pack(("PING",))), lane.submit(pack(("ROLE",))), return_exceptions=True
    )
    if isinstance(pong, BaseException):
        return fault_text(pong)
    # A fault of this one: no right to ask, or a proxy that does not know the command.
    if isinstance(role, list) and role and role[0] in NOT_A_MASTER:
        return NO_MASTER
    return lane.death


def fault_text(fault: BaseException) -> str:
    """Name a fault; only our own text is repeated, others may hold an address or a password."""
    return str(fault) if isinstance(fault, StoreLostError) else type(fault).__name__


async def _end(lane: Lane | None, connection: AbstractConnection | None) -> None:
    try:
        if lane is not None:
            await lane.close()
    finally:  # also when the link is closed while this lane is
        if connection is not None:
            await disconnect(connection)
