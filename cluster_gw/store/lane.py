"""One connection that carries the calls of a whole worker: packed together, answered in order.

All calls of one turn of the event loop leave in one write, which costs a tenth of a pooled
connection per call and loads Redis less. A lane lives as long as its connection: it dies once, and
the client then opens another. It must never outlive its connection, because redis-py would
reconnect silently on the next write and every reply would reach the wrong caller.

Unknown outcomes are `StoreLostError`: a call whose deadline passed may still be applied later.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import hiredis
import msgspec
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import AskError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError

from cluster_gw.errors import StoreLostError
from cluster_gw.store.replies import (
    NOTHING,
    UNAVAILABLE,
    Redirect,
    code_of,
    fault_of_reply,
    parsed_replies,
    redirect_of,
)

LAZY_S: Final = 0.002
LATE_LOOP_S: Final = 0.05  # our own loop was this late: replies may be waiting unread
GRACE_S: Final = 0.02

DEMOTED: Final = "READONLY"
MISSED: Final = "DEADLINE"
SLOW: Final = "SLOW"
SLOW_S: Final = 0.45  # a call that waits so long waits in a server that may be lost to others
ASKING: Final[bytes] = hiredis.pack_command(("ASKING",))


class NotSentError(StoreLostError):
    """Redis was known to be away, or the queue was full: nothing was sent."""


class MissedError(StoreLostError):
    """No reply within the deadline; it may still be applied."""


Argument = bytes | str | int | float
Reply = Any
"""A reply before a wrapper reads it: bytes, int, None, or lists of these."""


class Sink(Protocol):
    """Where the outcome of a call goes; a future is one."""

    def done(self) -> bool:
        """Whether there is an outcome, or nobody waits for it any more."""
        ...

    def set_result(self, reply: Reply, /) -> None:
        """Take the reply; only while not done."""
        ...

    def set_exception(self, fault: BaseException, /) -> None:
        """Take a StoreLostError or ScriptContractError instead; only while not done."""
        ...


class Load(Sink, Protocol):
    """A call that is packed only when it is written, so that more can join it until then."""

    def pack(self) -> bytes:
        """Give the command in Redis' protocol; asked once."""
        ...


class Call(msgspec.Struct, frozen=True, gc=False):
    """One call on its way: where its outcome goes, what was sent, how often it was redirected.

    The collector need not look at it: nothing that it holds leads back to it.
    """

    future: Sink
    packed: bytes
    hops: int = 0


class Listener(msgspec.Struct, frozen=True, kw_only=True):
    """Who is told what happens on a lane.

    Attributes:
        on_death: once, when the lane is lost.
        on_trouble: an error code that means "not now", `DEADLINE`, or `SLOW` before it, as often as
            it is met.
        on_redirect: takes a call that another node must have; None makes it a lost call.
    """

    on_death: Callable[["Lane"], None]
    on_trouble: Callable[[str], None]
    on_redirect: Callable[["Lane", Redirect, Call], None] | None = None


class Lane:
    """Batches calls over one open connection until it is lost.

    Args:
        connection: open and fresh.
        deadline_s: how long a call may take.
        max_pending: calls without a reply; further ones fail at once.
        max_misses: rounds of missed deadlines in a row after which the lane gives itself up.
        listener: who is told.

    Attributes:
        death: why it was lost.
    """

    def __init__(
        self,
        connection: AbstractConnection,
        *,
        deadline_s: float,
        max_pending: int,
        max_misses: int,
        listener: Listener,
    ) -> None:
        self.calls = 0
        self.flushes = 0
        self.misses = 0
        self.is_dead = False
        self.death = ""
        self._connection = connection
        self._deadline_s = deadline_s
        self._hurry_s = max(0.0, deadline_s - SLOW_S)
        self._max_pending = max_pending
        self._max_misses = max_misses
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._buffer: list[Call] = []
        self._lazy_loads: list[Load] = []
        self._loads: list[Load] = []
        self._waiting: deque[Call] = deque()
        self._deadlines: deque[tuple[float, Sink]] = deque()
        self._deadline_timer: asyncio.TimerHandle | None = None
        self._lazy_timer: asyncio.TimerHandle | None = None
        self._wake: asyncio.Future[None] | None = None
        self._is_due = False
        self._misses_in_row = 0
        self._writer = self._loop.create_task(self._write())
        self._reader = self._loop.create_task(self._read())

    @property
    def pending(self) -> int:
        """Calls that wait for a reply, abandoned ones included."""
        queued = len(self._buffer) + len(self._lazy_loads) + len(self._loads)
        return len(self._waiting) + queued

    def submit(self, packed: bytes, *, lazy: bool = False) -> asyncio.Future[Reply]:
        """Queue a call; its future ends within the deadline.

        Args:
            packed: the command in Redis' protocol.
            lazy: whether it may wait up to 2 ms for company.

        Returns:
            The reply, or StoreLostError or ScriptContractError. Cancelling it changes nothing for
            the others: its place in the order of replies stays.
        """
        future: asyncio.Future[Reply] = self._loop.create_future()
        self.send(packed, future, lazy=lazy)
        return future

    def send(
        self, packed: bytes, sink: Sink, *, lazy: bool = False, until_s: float | None = None
    ) -> None:
        """Queue a call whose outcome goes to `sink`, within the deadline; as `submit` otherwise.

        A sink that is not a future spares one, and a turn of the loop. `until_s`, a loop time, is a
        nearer deadline: that of what the call belongs to.
        """
        if self._takes(sink):
            self._buffer.append(Call(sink, packed))
            self._expect(sink, lazy=lazy)
            if until_s is not None:
                self._loop.call_at(until_s, _expire, sink)

    def send_late(self, load: Load, *, lazy: bool = False) -> None:
        """Queue a call that packs itself when it is written; as `send` otherwise.

        Of what leaves in one write the lazy ones come first: whoever gave something back, and asks
        for more, must find it free.
        """
        if self._takes(load):
            (self._lazy_loads if lazy else self._loads).append(load)
            self._expect(load, lazy=lazy)

    def _takes(self, sink: Sink) -> bool:
        if self.is_dead or self.pending >= self._max_pending:
            sink.set_exception(NotSentError("redis is away" if self.is_dead else "queue full"))
            return False
        self.calls += 1
        return True

    def _expect(self, sink: Sink, *, lazy: bool) -> None:
        """Keep the deadline of a call, and see to it that it is written."""
        at = self._loop.time() + self._deadline_s
        self._deadlines.append((at, sink))
        if self._deadline_timer is None:
            due = at - self._hurry_s
            self._deadline_timer = self._loop.call_at(due, self._check_deadlines, due)
        if self._is_due:
            return
        if not lazy:
            self._flush()
        elif self._lazy_timer is None:
            self._lazy_timer = self._loop.call_later(LAZY_S, self._flush)

    def take_over(self, call: Call, *, asking: bool) -> None:
        """Send a call that another node redirected here; its deadline stays with that lane.

        Args:
            call: what was not executed there.
            asking: whether the slot is still on its way, which must be said just before the call.
        """
        if self.is_dead or self.pending >= self._max_pending:
            call.future.set_exception(NotSentError("the node that has the slot is away"))
            return
        self.calls += 1
        if asking:
            done: asyncio.Future[Reply] = self._loop.create_future()
            done.set_result(None)  # its reply is of no interest
            self._buffer.append(Call(done, ASKING))
        self._buffer.append(Call(call.future, call.packed, call.hops + 1))
        self._flush()

    def kill(self, reason: str) -> None:
        """End the lane: every pending call fails with an unknown outcome. Safe to repeat."""
        if self.is_dead:
            return
        self.death = reason
        self.is_dead = True  # first: nothing may be written to this connection any more
        for timer in (self._deadline_timer, self._lazy_timer):
            if timer is not None:
                timer.cancel()
        current = asyncio.current_task(self._loop)
        for task in (self._writer, self._reader):
            if task is not current:
                task.cancel()
        # Calls that were redirected wait on another lane, but nobody would keep their deadline.
        waiting = [call.future for call in (*self._waiting, *self._buffer)]
        for future in (*waiting, *(future for _, future in self._deadlines)):
            if not future.done():
                future.set_exception(StoreLostError(reason))
        self._waiting.clear()
        self._deadlines.clear()
        self._buffer.clear()
        self._lazy_loads.clear()
        self._loads.clear()
        self._listener.on_death(self)

    async def close(self) -> None:
        """End the lane, wait for its tasks and close its connection."""
        self.kill("closed")
        await asyncio.gather(self._writer, self._reader, return_exceptions=True)
        await disconnect(self._connection)

    def _flush(self) -> None:
        # The writer runs in the next turn of the loop, so all calls of this turn join it.
        self._is_due = True
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _write(self) -> None:
        try:
            while True:
                if not self._is_due:
                    self._wake = self._loop.create_future()
                    await self._wake
                self._is_due = False
                if self._lazy_timer is not None:
                    self._lazy_timer.cancel()
                    self._lazy_timer = None
                data = self._packed()
                if not self._connection.is_connected:
                    self.kill("connection closed")  # a write now would reconnect silently
                    return
                self.flushes += 1
                await self._connection.send_packed_command(data, check_health=False)
        except Exception as fault:  # noqa: BLE001 - the boundary: redis-py also leaks bare TypeErrors
            self.kill(f"write failed: {type(fault).__name__}")

    def _packed(self) -> bytes:
        """Everything that is queued, in the order in which the replies will come."""
        lazy, queued, loads = self._lazy_loads, self._buffer, self._loads
        self._lazy_loads, self._buffer, self._loads = [], [], []
        calls = (*map(_call, lazy), *queued, *map(_call, loads))
        self._waiting.extend(calls)
        return b"".join([call.packed for call in calls])

    async def _read(self) -> None:
        parsed = parsed_replies(self._connection)
        try:
            while True:
                try:
                    reply = await self._connection.read_response(
                        disable_decoding=True, timeout=math.inf
                    )
                except ResponseError as fault:
                    reply = fault
                self._answer(reply)
                while not self.is_dead and type(reply := parsed()) is not NOTHING:
                    if isinstance(reply, RedisConnectionError):  # redis-py would raise it
                        self.kill(f"read failed: {type(reply).__name__}")
                    else:
                        self._answer(reply)
                if self.is_dead:
                    return
        except Exception as fault:  # noqa: BLE001 - the boundary: any fault of the connection
            self.kill(f"read failed: {type(fault).__name__}")

    def _answer(self, reply: Reply) -> None:
        self._misses_in_row = 0
        call = self._waiting.popleft()
        if isinstance(reply, ResponseError):
            self._refuse(reply, call)
        elif not call.future.done():
            call.future.set_result(reply)

    def _refuse(self, reply: ResponseError, call: Call) -> None:
        if isinstance(reply, AskError) and self._listener.on_redirect is not None:
            if not call.future.done():
                self._listener.on_redirect(self, redirect_of(reply), call)
            return
        if not call.future.done():
            call.future.set_exception(fault_of_reply(reply, call.packed))
        code = code_of(reply)
        if code == DEMOTED:  # a connection made anew finds the master
            self.kill(f"redis answered {code}")
        elif code in UNAVAILABLE:
            self._listener.on_trouble(code)

    def _check_deadlines(self, due: float) -> None:
        self._deadline_timer = None
        now = self._loop.time()
        if now - due > LATE_LOOP_S:
            # This loop was blocked, not Redis: read what has arrived before judging.
            self._deadline_timer = self._loop.call_at(
                now + GRACE_S, self._check_deadlines, math.inf
            )
            return
        missed, deadlines = False, self._deadlines
        while deadlines:
            at, sink = deadlines[0]
            is_done = sink.done()
            if not is_done and at > now:
                break
            deadlines.popleft()
            if not is_done:
                missed = True
                self.misses += 1
                sink.set_exception(MissedError("no reply within the deadline"))
        if missed:
            self._misses_in_row += 1
            self._listener.on_trouble(MISSED)
            if self._misses_in_row >= self._max_misses:
                self.kill("deadlines missed in a row")
                return
        if deadlines:
            at = deadlines[0][0]
            if is_slow := at - self._hurry_s <= now:
                self._listener.on_trouble(SLOW)
            due = at if is_slow else at - self._hurry_s
            self._deadline_timer = self._loop.call_at(due, self._check_deadlines, due)


def _call(load: Load) -> Call:
    return Call(load, load.pack())


def _expire(sink: Sink) -> None:
    if not sink.done():
        sink.set_exception(MissedError("no reply within the deadline"))


def pack(args: Sequence[Argument]) -> bytes:
    """Encode a command in Redis' protocol."""
    packed: bytes = hiredis.pack_command(tuple(args))  # type: ignore[arg-type] # its stub: 1-tuples
    return packed


async def disconnect(connection: AbstractConnection) -> None:
    """Close a connection at once; a fault while closing it means it is closed."""
    try:
        await connection.disconnect(nowait=True)
    except Exception:  # noqa: BLE001 - the boundary: redis-py raises whatever asyncio raised
        return
