"""Settlements on their way to Redis: queued, sent without delaying anyone, repeated until applied.

Room 10, off the response path. The script applies a lease id once and remembers it for ten minutes,
so repeating is safe within that time and stops a minute before its end.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from cluster_gw.errors import RecordUnreadableError, ScriptContractError, StoreLostError
from cluster_gw.store.batches import Batches, settlements
from cluster_gw.store.client import RedisClient
from cluster_gw.store.lane import Reply
from cluster_gw.store.lease import (
    NO_OUTCOME,
    Lease,
    Settlement,
    age_name,
    outcome_text,
    slot_name,
)
from cluster_gw.store.packing import ZERO, Template, bulk, seven
from cluster_gw.store.plan import Days, Plan
from cluster_gw.store.usage import told_of
from cluster_gw.units import LeaseId

MAX_PENDING: Final = 50_000
RETRY_FOR_S: Final = 540.0  # lua/lib/lease.lua remembers a settled lease for 600 s
MAX_TOLD: Final = 10_000  # kept in case Redis forgets them: a loss takes its last seconds with it
SLOT_AT: Final[Mapping[str, int]] = MappingProxyType({"admission/settle": 3, "client/settle": 4})
"""Scripts that charge, and which of their own arguments says in which second."""
OUTCOME_AT: Final = 4
BACKOFF_MIN_S: Final = 0.02
BACKOFF_MAX_S: Final = 1.0
BATCH: Final = 256

Heard = Callable[[list[Reply]], None]


class Entry:
    """One settlement that is not known to be applied; the outcome of its first try comes here.

    Args:
        queue: who is told.
        template: the call, up to its arguments.
        own: its arguments, packed, but for the day and the time.
        zone: of the day that the script is told, None for a script that takes none.
        until_s: when it is given up.
        heard: told the reply by which it was applied, None when nobody wants it.

    Attributes:
        day_ms: the clock the server told when it found ours to be off.
    """

    __slots__ = ("_is_done", "_queue", "day_ms", "heard", "own", "template", "until_s", "zone")

    def __init__(
        self,
        queue: "SettlementQueue",
        template: Template,
        own: bytes,
        zone: str | None,
        until_s: float,
        heard: Heard | None = None,
    ) -> None:
        self.heard = heard
        self.template = template
        self.own = own
        self.zone = zone
        self.until_s = until_s
        self.day_ms: int | None = None
        self._queue = queue
        self._is_done = False

    def done(self) -> bool:
        """Whether the first try has ended."""
        return self._is_done

    def set_result(self, reply: Reply, /) -> None:
        """Take the reply of the first try."""
        self._is_done = True
        self._queue.ended(self, reply)

    def set_exception(self, fault: BaseException, /) -> None:
        """Take the fault of the first try."""
        self._is_done = True
        self._queue.lost(self, fault)


class Told(NamedTuple):
    """A settlement that was applied.

    Attributes:
        at_s: when it was queued.
        again: queues it once more, given its age in seconds; where it is known that does nothing.
    """

    at_s: float
    again: Callable[[float], None]


class SettlementQueue:
    """Applies settlements exactly once.

    Attributes:
        pending: settlements not known to be applied.
        applied: settlements applied, or found to be applied before.
        late: those among them whose lease Redis no longer knew.
        abandoned: given up after nine minutes, or refused because the queue was full. Their lease
            expires, which keeps the request and the prompt counted.
        faults: settlements the script called wrong.
    """

    def __init__(
        self,
        client: RedisClient,
        days: Days,
        *,
        clock_ms: Callable[[], int],
        monotonic_s: Callable[[], float],
        server_now_ms: Callable[[], int],
        max_pending: int = MAX_PENDING,
    ) -> None:
        self.pending = 0
        self.applied = 0
        self.late = 0
        self.abandoned = 0
        self.faults = 0
        self._client = client
        self._days = days
        self._clock_ms = clock_ms
        self._monotonic_s = monotonic_s
        self._server_now_ms = server_now_ms
        self._max_pending = max_pending
        self._batches = Batches(
            client,
            settlements(),
            days,
            clock_ms=clock_ms,
            monotonic_s=monotonic_s,
            server_now_ms=server_now_ms,
        )
        self._again: deque[Entry] = deque()
        self._told: deque[Entry] = deque(maxlen=MAX_TOLD)
        self._retrying: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def add(
        self,
        plan: Plan,
        zone: str,
        lease_id: LeaseId,
        settlement: Settlement,
        *,
        lease: Lease | None,
        heard: Heard | None = None,
    ) -> None:
        """Queue the settlement of a target; it leaves with the next admission, or within 2 ms.

        Args:
            plan: of the target.
            zone: of its days.
            lease_id: what is settled.
            settlement: what happened.
            lease: None when the reply to its admission never came.
            heard: see `Entry`.
        """
        tokens = settlement.tokens
        whose, used = told_of(plan, settlement)
        own = seven(
            lease_id,
            str(tokens) if tokens > 0 else "0",
            "1" if settlement.counts_request else "0",
            slot_name(lease.second if lease else 0),
            outcome_text(lease, settlement.health, plan.days),
            whose,
            used,
        )
        charges = settlement.counts_request or tokens > 0
        entry = self._take(plan.settle, own, zone, heard=heard, charges=charges)
        if entry is None:
            return
        if settlement.health.is_remembered() or (lease is not None and lease.is_recorded):
            # The script for many would leave it undone, and it would come a round trip later.
            self._client.send(plan.settle, self._packed(entry), entry, lazy=True)
        else:
            self._batches.add(plan, zone, own, entry)

    def add_late(
        self, plan: Plan, zone: str, lease_id: LeaseId, settlement: Settlement, *, age_s: float
    ) -> None:
        """Queue the settlement of a lease that Redis did not give, and may never have heard of.

        Args:
            plan: of the target, like the next three.
            zone: see `add`.
            lease_id: see `add`.
            settlement: see `add`.
            age_s: since it was given, so that it counts in its own second.
        """
        own = bulk(
            lease_id,
            max(0, settlement.tokens),
            int(settlement.counts_request),
            age_name(age_s),
            outcome_text(None, settlement.health, plan.days),
            *told_of(plan, settlement),
        )
        self.add_call(plan.settle, own, zone, lazy=True)

    def add_call(
        self,
        template: Template,
        own: bytes,
        zone: str | None,
        *,
        lazy: bool,
        heard: Heard | None = None,
        charges: bool = True,
    ) -> None:
        """Queue any script call that is idempotent for ten minutes and replies as `settle` does.

        Args:
            template: see `Entry`, like the next two.
            own: its arguments, but for the day and the time.
            zone: of the day.
            lazy: whether it may wait up to 2 ms for company.
            heard: see `Entry`.
            charges: whether applying it twice would do harm. What charges nothing is never given
                up, though its id is forgotten after a while.
        """
        entry = self._take(template, own, zone, heard=heard, charges=charges)
        if entry is not None:
            self._client.send(template, self._packed(entry), entry, lazy=lazy)

    def take_told(self, at_s: float, is_meant: Callable[[str], bool]) -> list[Told]:
        """Give what charged a limit and was applied, of what was queued since then.

        What is told again is kept anew when it is applied; what was taken is not given twice.

        Args:
            at_s: monotonic seconds.
            is_meant: tells by the first key of a call whether it is wanted.
        """
        taken, kept = [], deque[Entry](maxlen=MAX_TOLD)
        for entry in self._told:
            queued_s, template = entry.until_s - RETRY_FOR_S, entry.template
            if (
                at_s <= queued_s < math.inf
                and template.script.name in SLOT_AT
                and is_meant(str(template.route[3]))
            ):
                taken.append(Told(queued_s, partial(self._tell_again, entry)))
            else:
                kept.append(entry)
        self._told = kept
        return taken

    async def drain(self, deadline_s: float) -> int:
        """Wait until all are applied, at most `deadline_s`; tell how many are not."""
        try:
            async with asyncio.timeout(deadline_s):
                await self._idle.wait()
        except TimeoutError:
            return self.pending
        return 0

    async def close(self) -> None:
        """Stop repeating; what is still pending stays unapplied."""
        if self._retrying is not None:
            self._retrying.cancel()
            await asyncio.gather(self._retrying, return_exceptions=True)

    def lost(self, entry: Entry, fault: BaseException) -> None:
        """Take the fault of a first try."""
        if not isinstance(fault, RecordUnreadableError):  # the next one is told which record it is
            self._client.count_lost(fault)
        self.ended(entry, fault)

    def ended(self, entry: Entry, outcome: Reply) -> None:
        """Take the outcome of a try: a reply, or a fault."""
        if isinstance(outcome, StoreLostError):
            self._repeat(entry)
        elif isinstance(outcome, ScriptContractError):
            self.faults += 1
            self._finish()
        elif outcome[0] == 0:  # day_stale: the reply carries the server's clock
            entry.day_ms = int(outcome[2])
            self._repeat(entry)
        else:
            self.applied += 1
            self.late += outcome[1] == b"late"
            self._told.append(entry)
            if entry.heard is not None:
                entry.heard(outcome)
                entry.heard = None  # the entry is kept for a while, what it told is not
            self._finish()

    def _take(
        self,
        template: Template,
        own: bytes,
        zone: str | None,
        *,
        heard: Heard | None,
        charges: bool,
    ) -> Entry | None:
        """Give the entry of a settlement, or None when there are too many."""
        if self.pending >= self._max_pending:
            self.abandoned += 1
            return None
        self.pending += 1
        self._idle.clear()
        clock_s = self._monotonic_s
        until_s = clock_s() + RETRY_FOR_S if charges else math.inf
        return Entry(self, template, own, zone, until_s, heard)

    def _tell_again(self, told: Entry, age_s: float) -> None:
        """Queue an applied settlement once more, as long as its id is surely remembered.

        What it said of health is left out: it may be out of date.
        """
        template, zone = told.template, told.zone
        if self._monotonic_s() > told.until_s:
            return
        words = [word.decode() for word in told.own.split(b"\r\n")[1::2]]
        words[SLOT_AT[template.script.name]] = age_name(age_s)
        if zone is not None:
            words[OUTCOME_AT] = outcome_text(None, NO_OUTCOME, ())
        entry = self._take(template, bulk(*words), zone, heard=None, charges=True)
        if entry is not None:
            entry.until_s = told.until_s
            self._client.send(template, self._packed(entry), entry, lazy=True)

    def _packed(self, entry: Entry) -> bytes:
        now_ms = self._server_now_ms()
        now = bulk(now_ms) if now_ms else ZERO
        if entry.zone is None:
            return b"".join((entry.template.head, entry.own, now))
        day = self._days.packed(entry.day_ms or self._clock_ms(), entry.zone)
        return b"".join((entry.template.head, entry.own, day, entry.template.tail, now))

    def _finish(self) -> None:
        self.pending -= 1
        if self.pending == 0:
            self._idle.set()

    def _repeat(self, entry: Entry) -> None:
        if self._monotonic_s() > entry.until_s:
            self.abandoned += 1
            self._finish()
            return
        self._again.append(entry)
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.get_running_loop().create_task(self._retry())

    async def _retry(self) -> None:
        backoff_s = BACKOFF_MIN_S
        while self._again:
            await asyncio.sleep(backoff_s)
            batch = [self._again.popleft() for _ in range(min(BATCH, len(self._again)))]
            outcomes = await asyncio.gather(
                *(self._client.run_packed(entry.template, self._packed(entry)) for entry in batch),
                return_exceptions=True,
            )
            lost = any(isinstance(outcome, StoreLostError) for outcome in outcomes)
            backoff_s = min(backoff_s * 2, BACKOFF_MAX_S) if lost else BACKOFF_MIN_S
            for entry, outcome in zip(batch, outcomes, strict=True):
                self.ended(entry, outcome)
