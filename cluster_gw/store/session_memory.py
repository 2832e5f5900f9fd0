"""What is kept of conversations for their next requests, as plain strings that end by themselves.

A hint like a bond: read before an upstream is called, written after an answer, never waited for
longer than `READ_S` over all of a request. A read that took too long lets the next ones pass by for
a while, so that slow trouble costs few requests anything at all.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from cluster_gw.errors import RecordUnreadableError, ScriptContractError, StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.in_time import expire
from cluster_gw.store.lane import Reply
from cluster_gw.store.sealing import Seal, UnsealError
from cluster_gw.units import MS_PER_S

READ_S: Final = 0.05
REST_S: Final = 1.0
OVERHEAD_BYTES: Final = 200  # of a key in Redis: its name, its expiry, the tables
HALF: Final = 2


class Result(StrEnum):
    """What became of a read or a write."""

    FOUND = "found"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    LOST = "lost"
    KEPT = "kept"
    TOO_LARGE = "too_large"
    OVER_BUDGET = "over_budget"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Where something is kept, and for how long after it was last used.

    Attributes:
        name: of its key.
        kind: of what is kept, for numbers.
        ttl_ms: above 0.
        client: whose it is; one has no more of what there is room for than any other.
    """

    name: str
    kind: str
    ttl_ms: int
    client: str = ""


class Part(msgspec.Struct):
    """What one client wrote lately: what is older counts less and less.

    Attributes:
        at_s: when it was right.
    """

    bytes: float = 0.0
    at_s: float = 0.0


class ByteMeter:
    """Bounds the bytes that live at once: half may be written at once, the rest over a life.

    While less than half of that is in use anybody may write. Above, a client that has as much as
    its equal part of all writes nothing: what gets free is for those with less.

    Attributes:
        most_bytes: of all that lives; changed while it is in use.
    """

    def __init__(self) -> None:
        self.most_bytes = 0.0
        self._spent_bytes = 0.0
        self._at_s = self._swept_s = 0.0
        self._parts: dict[str, Part] = {}

    def passes(self, size_bytes: int, ttl_s: float, now_s: float, client: str = "") -> bool:
        """Whether so many may be written now; counts them then.

        Args:
            size_bytes: above 0.
            ttl_s: how long they live.
            now_s: monotonic seconds.
            client: who wants to write them.
        """
        half = self.most_bytes / HALF
        given_back = (now_s - self._at_s) * half / ttl_s
        self._spent_bytes, self._at_s = max(0.0, self._spent_bytes - given_back), now_s
        part, after = self._part(client, ttl_s, now_s), self._spent_bytes + size_bytes
        is_greedy = part.bytes >= half / len(self._parts)
        if after > half or (after > half / HALF and is_greedy):
            return False
        self._spent_bytes = after
        part.bytes += size_bytes
        return True

    def _part(self, client: str, ttl_s: float, now_s: float) -> Part:
        """That of a client; whoever wanted nothing for a life has none."""
        if now_s - self._swept_s >= ttl_s:
            self._swept_s = now_s
            self._parts = {
                name: part for name, part in self._parts.items() if now_s - part.at_s < ttl_s
            }
        part = self._parts.get(client)
        if part is None:
            part = self._parts[client] = Part(at_s=now_s)
        part.bytes, part.at_s = part.bytes * math.exp((part.at_s - now_s) / ttl_s), now_s
        return part


class SessionMemory:
    """Keeps and finds values for all workers.

    Args:
        client: of the Redis of what may be lost.
        seal: encrypts values.
        monotonic_s: clock.
        read_s: how long one request waits for all of it, at most.

    Attributes:
        read_s: the same.
        counts: reads and writes by kind and result.
    """

    def __init__(
        self,
        client: RedisClient,
        seal: Seal,
        monotonic_s: Callable[[], float],
        *,
        read_s: float = READ_S,
    ) -> None:
        self.read_s = read_s
        self.counts: dict[tuple[str, Result], int] = {}
        self._client = client
        self._seal = seal
        self._monotonic_s = monotonic_s
        self._rests_until_s = -REST_S
        self._meters: dict[str, ByteMeter] = {}

    def ask(self, record: Record, within_s: float | None = None) -> asyncio.Future[Reply]:
        """Ask what is kept; what is found lives on. Leaves with what else does in this turn."""
        future = self._client.submit("GETEX", record.name, "PX", record.ttl_ms)
        loop = asyncio.get_running_loop()
        due_s = loop.time() + (self.read_s if within_s is None else within_s)
        loop.call_at(due_s, expire, future, loop, due_s)
        future.add_done_callback(_look_at)
        return future

    @property
    def is_resting(self) -> bool:
        """Whether nothing is asked now, since the last answer did not come in time."""
        return self._monotonic_s() < self._rests_until_s

    async def find(
        self, records: Sequence[Record], within_s: float | None = None
    ) -> list[bytes | None]:
        """What is kept; None for nothing, and for whatever Redis did not tell in time.

        Args:
            records: a few; all leave in one write.
            within_s: how long to wait, at most; None for `read_s`.
        """
        if self.is_resting or (within_s is not None and within_s <= 0):
            self.count_lost(records)
            return [None] * len(records)
        asked = [self.ask(record, within_s) for record in records]
        return [await self.told(one, future) for one, future in zip(records, asked, strict=True)]

    async def told(self, record: Record, future: asyncio.Future[Reply]) -> bytes | None:
        """Wait for the answer to one question."""
        try:
            stored = await future
        except RecordUnreadableError:
            self._unreadable(record)
            return None
        except (StoreLostError, ScriptContractError):
            self._rests_until_s = self._monotonic_s() + REST_S
            self._count(record.kind, Result.LOST)
            return None
        if stored is None:
            self._count(record.kind, Result.MISSING)
            return None
        try:
            value = self._seal.open(record.name, bytes(stored))
        except UnsealError:  # after a change of the master key all are, until they end
            self._count(record.kind, Result.UNREADABLE)
            return None
        self._count(record.kind, Result.FOUND)
        return value

    def count_lost(self, records: Sequence[Record]) -> None:
        """Count what nobody asked for because Redis is in trouble."""
        for record in records:
            self._count(record.kind, Result.LOST)

    def unread(self, record: Record) -> None:
        """A value that was found is none that we write."""
        self._count(record.kind, Result.FOUND, -1)
        self._unreadable(record)

    def keep(self, record: Record, value: bytes, *, most_bytes: int, budget_bytes: float) -> None:
        """Write in the background; the outcome is only counted.

        Args:
            record: where.
            value: what.
            most_bytes: a larger value is not kept.
            budget_bytes: of all that this worker may have of the kind; infinite for what takes the
                place of something as large.
        """
        size = len(value) + OVERHEAD_BYTES
        if len(value) > most_bytes:
            self.pass_by(record.kind)
            return
        meter = self._meters.setdefault(record.kind, ByteMeter())
        if budget_bytes != math.inf:
            meter.most_bytes = budget_bytes
            ttl_s, now_s = record.ttl_ms / MS_PER_S, self._monotonic_s()
            if not meter.passes(size, ttl_s, now_s, record.client):
                self._count(record.kind, Result.OVER_BUDGET)
                return
        sealed = self._seal.close(record.name, value)
        future = self._client.submit("SET", record.name, sealed, "PX", record.ttl_ms)
        future.add_done_callback(lambda done: self._written(record, done))

    def pass_by(self, kind: str) -> None:
        """Count what is too large to be kept."""
        self._count(kind, Result.TOO_LARGE)

    def _written(self, record: Record, done: asyncio.Future[Reply]) -> None:
        is_kept = not done.cancelled() and done.exception() is None
        self._count(record.kind, Result.KEPT if is_kept else Result.LOST)

    def _unreadable(self, record: Record) -> None:
        self._count(record.kind, Result.UNREADABLE)
        self._client.unreadable.tell(record.name)

    def _count(self, kind: str, result: Result, by: int = 1) -> None:
        place = (kind, result)
        self.counts[place] = self.counts.get(place, 0) + by


def _look_at(future: asyncio.Future[Reply]) -> None:
    """Whoever asked may have gone away meanwhile."""
    if not future.cancelled():
        future.exception()
