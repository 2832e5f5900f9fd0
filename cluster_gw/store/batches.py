"""Calls of one target that leave in the same write go to Redis as one script call.

A script reads and writes the target's windows once for all of them, which costs Redis a quarter
where twenty come together; one that comes alone is sent as ever. What the scripts for many leave
undone (a refusal, a lease seen before, a target with a health record) is asked one by one, so the
rules of it stand in one place only.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from cluster_gw.errors import ScriptContractError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.lane import Reply, Sink
from cluster_gw.store.packing import ZERO, Many, Template, bulk
from cluster_gw.store.plan import Days, Plan
from cluster_gw.store.replies import ScriptMissingError

MOST: Final = 64  # so that no call keeps Redis for long: 0.3 ms
SINGLY_S: Final = 1.0  # how long a target that is not plain is asked one by one
UNDONE: Final = -2  # instead of what is left


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A script for one call and the script for many of them.

    Attributes:
        single: the call for one: its own arguments, `before`, the day and the tail follow.
        many: the call for many.
        before: packed arguments that are the same for all targets.
        is_told_more: whether `before`, the day and the tail also begin the call for many.
        is_lazy: whether calls may wait up to 2 ms for company.
        parts: gives each call's part of a reply to many, as the script for one would reply; None
            for a call of which nothing was done.
    """

    single: Callable[[Plan], Template]
    many: Callable[[Plan], Many]
    before: bytes
    is_told_more: bool
    is_lazy: bool
    parts: Callable[[Reply], Iterator[Reply | None]]


def reservations(worker: bytes) -> Kind:
    """Give the kind of `reserve` calls of a worker, by its packed name."""
    return Kind(
        single=lambda plan: plan.reserve,
        many=lambda plan: plan.reserve_many,
        before=worker,
        is_told_more=True,
        is_lazy=False,
        parts=_admitted,
    )


def settlements() -> Kind:
    """Give the kind of `settle` calls."""
    return Kind(
        single=lambda plan: plan.settle,
        many=lambda plan: plan.settle_many,
        before=b"",
        is_told_more=False,
        is_lazy=True,
        parts=_settled,
    )


def _admitted(reply: Reply) -> Iterator[Reply | None]:
    second = reply[1]
    for at in range(2, len(reply), 2):
        left = reply[at]
        yield None if left == UNDONE else [1, b"ok", left, reply[at + 1], second]


def _settled(reply: Reply) -> Iterator[Reply | None]:
    for is_done in reply[1:]:
        yield [1, b"settled"] if is_done else None


class Batch:
    """Calls of one target on their way; the outcome of all of them comes here.

    Args:
        batches: whose it is.
        plan: of the target.
        zone: of its days.

    Attributes:
        owns: the packed arguments of each call.
        sinks: where the outcome of each goes.
        until_s: loop time of its deadline, also for those that are asked alone afterwards.
    """

    __slots__ = ("_batches", "_is_done", "owns", "plan", "sinks", "until_s", "zone")

    def __init__(self, batches: "Batches", plan: Plan, zone: str, until_s: float) -> None:
        self.plan = plan
        self.until_s = until_s
        self.zone = zone
        self.owns: list[bytes] = []
        self.sinks: list[Sink] = []
        self._batches = batches
        self._is_done = False

    def pack(self) -> bytes:
        """Give the call as it is to be sent; no other can join it any more."""
        self._batches.close(self)
        if len(self.owns) == 1:
            return self._batches.alone(self.plan, self.zone, self.owns[0])
        return self._batches.together(self)

    def done(self) -> bool:
        """Whether the call has ended."""
        return self._is_done

    def set_result(self, reply: Reply, /) -> None:
        """Hand each call its part of the reply.

        It is not done before all have theirs: if one of them fails, the lane fails the rest.
        """
        if len(self.sinks) == 1:
            if not self.sinks[0].done():
                self.sinks[0].set_result(reply)
        elif not reply[0]:
            self._batches.ask_singly(self)
        else:
            parts = self._batches.parts(reply)
            for own, sink, part in zip(self.owns, self.sinks, parts, strict=True):
                if part is None:
                    self._batches.ask(self.plan, self.zone, own, sink, self.until_s)
                elif not sink.done():
                    sink.set_result(part)
        self._is_done = True

    def set_exception(self, fault: BaseException, /) -> None:
        """Hand each call the fault; one that may be another's is not shared."""
        self._is_done = True
        self._batches.close(self)
        if len(self.sinks) > 1 and isinstance(fault, (ScriptMissingError, ScriptContractError)):
            self._batches.ask_singly(self)
            return
        for sink in self.sinks:
            if not sink.done():
                sink.set_exception(fault)


class Batches:
    """The calls of one kind, by target.

    Args:
        client: the worker's Redis client.
        kind: of the calls.
        days: tell the present day of a zone.
        clock_ms: wall clock, ms since the epoch; only tells which calendar day it is.
        monotonic_s: clock for how long a target is asked one by one.
        server_now_ms: the time scripts work with; 0 means the server's own.

    Attributes:
        joined: calls that left together with another.
    """

    def __init__(
        self,
        client: RedisClient,
        kind: Kind,
        days: Days,
        *,
        clock_ms: Callable[[], int],
        monotonic_s: Callable[[], float],
        server_now_ms: Callable[[], int],
    ) -> None:
        self.joined = 0
        self._client = client
        self._kind = kind
        self._days = days
        self._clock_ms = clock_ms
        self._monotonic_s = monotonic_s
        self._server_now_ms = server_now_ms
        self._open: dict[int, Batch] = {}  # by the identity of the plan, which the batch keeps
        self._singly_until_s: dict[str, float] = {}  # by the first window

    def add(self, plan: Plan, zone: str, own: bytes, sink: Sink) -> None:
        """Send a call, together with others of its target that leave in the same write.

        Args:
            plan: of the target.
            zone: of its days.
            own: the packed arguments that are the call's own.
            sink: where its outcome goes: what the script for one would reply, or a fault.
        """
        batch = self._open.get(id(plan))
        if batch is not None:
            batch.owns.append(own)
            batch.sinks.append(sink)
            if len(batch.owns) == MOST:
                self.close(batch)
            return
        if plan.is_capped or (self._singly_until_s and self._is_asked_singly(plan)):
            self.ask(plan, zone, own, sink)
            return
        until_s = asyncio.get_running_loop().time() + self._client.deadline_s
        batch = self._open[id(plan)] = Batch(self, plan, zone, until_s)
        batch.owns.append(own)
        batch.sinks.append(sink)
        self._client.send_late(self._kind.single(plan), batch, lazy=self._kind.is_lazy)

    def close(self, batch: Batch) -> None:
        """Let no other call join a batch."""
        if self._open.get(id(batch.plan)) is batch:
            del self._open[id(batch.plan)]

    def ask(
        self, plan: Plan, zone: str, own: bytes, sink: Sink, until_s: float | None = None
    ) -> None:
        """Send a call alone, if anybody still waits for it, with the deadline of its batch."""
        if sink.done():
            return
        self._client.send(
            self._kind.single(plan),
            self.alone(plan, zone, own),
            sink,
            lazy=self._kind.is_lazy,
            until_s=until_s,
        )

    def ask_singly(self, batch: Batch) -> None:
        """Send each call of a batch of which nothing was done; and those of the next second."""
        self._singly_until_s[batch.plan.windows[0]] = self._monotonic_s() + SINGLY_S
        for own, sink in zip(batch.owns, batch.sinks, strict=True):
            self.ask(batch.plan, batch.zone, own, sink, batch.until_s)

    def alone(self, plan: Plan, zone: str, own: bytes) -> bytes:
        """Pack the call of the script for one."""
        template = self._kind.single(plan)
        return b"".join((template.head, own, self._day_and_tail(plan, zone), self._now()))

    def together(self, batch: Batch) -> bytes:
        """Pack the call of the script for many."""
        kind, plan = self._kind, batch.plan
        self.joined += len(batch.owns)
        common = self._day_and_tail(plan, batch.zone) if kind.is_told_more else b""
        head = kind.many(plan).head(len(batch.owns))
        return b"".join((head, common, *batch.owns, self._now()))

    def parts(self, reply: Reply) -> Iterator[Reply | None]:
        """Give each call's part of a reply; None for what was not done."""
        return self._kind.parts(reply)

    def _day_and_tail(self, plan: Plan, zone: str) -> bytes:
        day = self._days.packed(self._clock_ms(), zone)
        return b"".join((self._kind.before, day, self._kind.single(plan).tail))

    def _is_asked_singly(self, plan: Plan) -> bool:
        until_s = self._singly_until_s.get(plan.windows[0])
        if until_s is None:
            return False
        if self._monotonic_s() < until_s:
            return True
        del self._singly_until_s[plan.windows[0]]
        return False

    def _now(self) -> bytes:
        now_ms = self._server_now_ms()
        return bulk(now_ms) if now_ms else ZERO
