"""Admission and settlement of one target: the typed wrapper over `lua/admission` (room 6 and 10).

Both scripts know a lease by its id, so a call whose outcome is unknown may be repeated. A
settlement is therefore queued and repeated until it is applied; an admission is not repeated (the
caller goes on to another target) but its lease is released, in case it was granted after all.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Gate
from cluster_gw.errors import RecordUnreadableError, ScriptContractError, StoreLostError
from cluster_gw.store.absence import Doubt
from cluster_gw.store.alone import Alone, HeldBackError
from cluster_gw.store.asking import Asking
from cluster_gw.store.bars import HEALTH_GATES, Bars
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys, encode_part
from cluster_gw.store.lane import NotSentError, Reply
from cluster_gw.store.lease import Lease, Outcome, Refusal, Settlement, TargetLimits
from cluster_gw.store.packing import bulk
from cluster_gw.store.plan import HEALTH_SCOPES, SCOPE_CLIENT, SCOPE_MODEL, Days, Plan, Plans
from cluster_gw.store.refusals import Refusals
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.settlement import SettlementQueue
from cluster_gw.store.stand_in import StandIn
from cluster_gw.store.tallies import Tallies
from cluster_gw.store.usage_book import UsageBook
from cluster_gw.units import MS_PER_S, LeaseId

__all__ = ["Admissions", "Lease", "Outcome", "Refusal", "Settlement", "TargetLimits"]

DAY_STALE_RETRY_MS: Final = 1000
UNREADABLE_RETRY_MS: Final = 1000
UNDISPATCHED: Final = Settlement(counts_request=False, tokens=0, outcome="undispatched")
FORGIVEN_REPLY: Final = 2  # words in the reply of a settlement, but for one whose end was booked
PLAIN_REPLY: Final = 5  # words in that of an admission, where nothing of health is recorded
SCRIPTS: Final = (
    *("admission/reserve", "admission/reserve_many", "admission/settle", "admission/settle_many"),
    *("admission/tally", "usage/note", "usage/save"),
)


def server_clock() -> int:
    """0: the scripts take the time from the Redis server."""
    return 0


class Admissions:
    """Takes capacity of targets and gives back what was not used.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        worker_id: names this worker in its leases, so that another can find them when it is dead.
        clock_ms: wall clock, ms since the epoch; only tells which calendar day it is.
        monotonic_s: clock for retry times and `Lease.admitted_at_s`.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        *,
        worker_id: str,
        clock_ms: Callable[[], int],
        monotonic_s: Callable[[], float],
        server_now_ms: Callable[[], int] = server_clock,
    ) -> None:
        self._client = client
        self._clock_ms = clock_ms
        self._monotonic_s = monotonic_s
        self._server_now_ms = server_now_ms
        self._plans = Plans(keys, scripts)
        self._days = Days()
        self._asking = Asking(
            client,
            self._days,
            bulk(encode_part(worker_id)),
            clock_ms=clock_ms,
            monotonic_s=monotonic_s,
            server_now_ms=server_now_ms,
        )
        self.refusals = Refusals()
        self.bars = Bars()
        self.settlements = SettlementQueue(
            client,
            self._days,
            clock_ms=clock_ms,
            monotonic_s=monotonic_s,
            server_now_ms=server_now_ms,
        )
        self._alone: Alone | None = None
        self._stand_in: StandIn | None = None
        # Both are touched by every request: in good times nothing is in the first.
        self._doubts: dict[str, Doubt] = {}
        self._heard: dict[TargetLimits, Lease] = {}
        self.tallies = Tallies(client, scripts, server_now_ms=server_now_ms)
        self.usage = UsageBook(
            client, scripts, keys, self._plans, worker_id=worker_id, clock_ms=clock_ms
        )
        client.know(*(scripts[name] for name in SCRIPTS))

    @property
    def pending(self) -> int:
        """Settlements not known to be applied."""
        return self.settlements.pending

    def go_on_with(self, alone: Alone) -> None:
        """Have this decide while Redis is away; without it every admission fails meanwhile."""
        self._alone, self._doubts = alone, alone.doubts
        self._stand_in = StandIn(alone, self._plans, self.settlements, self.bars)
        self._heard = self._stand_in.heard

    async def reserve(
        self, target: TargetLimits, lease_id: LeaseId, demand: Demand, *, ttl_ms: int
    ) -> Lease | Refusal:
        """Take one request and the demand's tokens of a target, or tell why not.

        A refusal is remembered: until its gate may open, at most a second, the same question is
        answered without asking Redis.

        Args:
            target: what is asked for.
            lease_id: fresh for each attempt.
            demand: the estimate; all of it is reserved.
            ttl_ms: when the lease expires by itself, 1 ms to 1 h (longer is cut): the request's
                deadline and a margin.

        Raises:
            StoreLostError: whether it was admitted is unknown, or it was before Redis was lost; the
                lease is released in the background.
            ScriptContractError: a bug.
        """
        plan = self._plans.of(target)
        if self._doubts and self._stand_in is not None and self._stand_in.has_to_serve(plan):
            # What was let in here runs, whatever the limits say by then: it has to be counted.
            note = partial(self._asking.register, plan, target.day_reset, lease_id, demand)
            return self._stand_in.reserve(
                plan, target, lease_id, demand, ttl_ms=ttl_ms, register=note
            )
        if self.refusals.entries or self.bars.entries:
            barred = self._barring(plan, demand.total_tokens)
            if barred is not None:
                return barred
        narrow = self._narrow(plan, target, lease_id, demand) if self._doubts else None
        try:
            reply = await self._asking.ask(
                plan, target.day_reset, lease_id, demand, ttl_ms, bounds=narrow
            )
        except RecordUnreadableError:
            return self._unreadable(plan, lease_id, demand.total_tokens)
        except (StoreLostError, asyncio.CancelledError) as fault:
            self._release(plan, target.day_reset, lease_id, fault)
            raise
        if self._doubts:
            self._note_answer(plan, target.day_reset, lease_id, reply, is_narrow=narrow is not None)
        if reply[0] == 0:
            held_back = None
            if narrow is not None or self._doubts:
                held_back = self._held_back(plan, lease_id, demand, reply, narrow)
            return held_back or self._refused(plan, demand.total_tokens, reply)
        if reply[1] != b"ok":
            raise ScriptContractError("a lease id was used again after it was settled")
        generation, is_trial, reserved_at_ms = reply[5:] or (0, 0, reply[4] * MS_PER_S)
        clock_s = self._monotonic_s
        lease = self._heard[target] = Lease(
            id=lease_id,
            target=target,
            estimate_tokens=demand.input_tokens + demand.output_tokens,
            prompt_tokens=demand.input_tokens,
            admitted_at_s=clock_s(),
            requests_left=reply[2],
            tokens_left=reply[3],
            second=reply[4],
            generation=generation,
            is_trial=bool(is_trial),
            reserved_at_ms=reserved_at_ms,
            is_recorded=len(reply) > PLAIN_REPLY,
        )
        return lease

    def is_alone(self, target: TargetLimits) -> bool:
        """Whether this worker decides about a target by itself now, or refuses it at once."""
        if not self._doubts or self._stand_in is None:
            return False
        return self._stand_in.has_to_serve(self._plans.of(target))

    def settle(
        self, lease: Lease, settlement: Settlement, on_booked: Callable[[], None] | None = None
    ) -> None:
        """Replace a lease's estimate by what happened; queued, repeated until applied once.

        Args:
            lease: what ends.
            settlement: how.
            on_booked: called when an end that might have been forgiven was booked, as the third in
                a row.
        """
        plan = self._plans.of(lease.target)
        if self.refusals.entries or self.bars.entries:
            self._note_freed(plan)
        self.tallies.add(plan.statistics, settlement.sample, settlement.tokens)
        if self._stand_in is not None:
            if lease.is_local:
                self._stand_in.settle(plan, lease, settlement)
                return
            if self._doubts:
                self._stand_in.note_end(plan, lease, settlement)
        heard = None
        if on_booked is not None:

            def heard(reply: list[Reply]) -> None:
                if len(reply) > FORGIVEN_REPLY:
                    on_booked()

        zone = lease.target.day_reset
        self.settlements.add(plan, zone, lease.id, settlement, lease=lease, heard=heard)

    def _note_freed(self, plan: Plan) -> None:
        for subject in plan.windows:
            self.refusals.forget_slot(subject)
        self.bars.forget_trial(plan.health)

    def is_refused(self, target: TargetLimits, demand_tokens: int) -> bool:
        """Whether a refusal of this target is remembered; Redis is not asked."""
        return self.barring(target, demand_tokens) is not None

    def barring(self, target: TargetLimits, demand_tokens: int) -> Refusal | None:
        """The refusal of this target that is remembered, if any; Redis is not asked."""
        return self._barring(self._plans.of(target), demand_tokens)

    async def drain(self, deadline_s: float) -> int:
        """Wait until all settlements are applied, at most `deadline_s`; tell how many are not."""
        await self.tallies.flush()
        return await self.settlements.drain(deadline_s)

    async def close(self) -> None:
        """Stop repeating settlements; call `drain` before."""
        await self.settlements.close()

    def _release(self, plan: Plan, zone: str, lease_id: LeaseId, fault: BaseException) -> None:
        """Give back what may have been granted: this fences the id, whichever comes first."""
        if not isinstance(fault, NotSentError):
            self.settlements.add(plan, zone, lease_id, UNDISPATCHED, lease=None)
        if self._alone is not None and isinstance(fault, StoreLostError):
            self._alone.note(plan.keys[0], fault)

    def _barring(self, plan: Plan, demand_tokens: int) -> Refusal | None:
        now_s = self._monotonic_s()
        if self.bars.entries:
            barred = self.bars.barring(plan.health, HEALTH_SCOPES, now_s)
            if barred is not None:
                return barred
        for subject in plan.subjects:
            refusal = self.refusals.barring(subject, demand_tokens=demand_tokens, now_s=now_s)
            if refusal is not None:
                return refusal
        return None

    def _narrow(
        self, plan: Plan, target: TargetLimits, lease_id: LeaseId, demand: Demand
    ) -> bytes | None:
        """What to ask for instead of the limits, None for these: see `StandIn.narrow`."""
        if self._stand_in is None:
            return None
        return self._stand_in.narrow(plan, target, lease_id, demand)

    def _note_answer(
        self, plan: Plan, zone: str, lease_id: LeaseId, reply: list[Reply], *, is_narrow: bool
    ) -> None:
        """Redis answered while it is in doubt.

        Raises:
            HeldBackError: it was asked before that, without caution; the lease goes back.
        """
        if self._alone is None or self._stand_in is None:
            return
        self._alone.note_answer(plan.keys[0])
        if reply[0] and not is_narrow and self._stand_in.is_rash(plan, lease_id):
            self.settlements.add(plan, zone, lease_id, UNDISPATCHED, lease=None)
            raise HeldBackError(0.0)

    def _held_back(
        self,
        plan: Plan,
        lease_id: LeaseId,
        demand: Demand,
        reply: list[Reply],
        narrow: bytes | None,
    ) -> Refusal | None:
        """What a refusal means that came while others may have to tell what they did."""
        if self._stand_in is None:
            return None
        if narrow is None:
            self._stand_in.refused(lease_id)
            return None
        position = int(reply[2])
        gate = plan.gate(Gate(reply[1].decode()), position)
        return self._stand_in.held_back(plan, demand, gate, position)

    def _unreadable(self, plan: Plan, lease_id: LeaseId, demand_tokens: int) -> Refusal:
        """Nothing was taken; nothing is known of the target until somebody mends its records."""
        if self._doubts and self._stand_in is not None:
            self._stand_in.refused(lease_id)
        refusal = Refusal(
            gate=Gate.RECORD_UNREADABLE, scope=SCOPE_MODEL, retry_after_ms=UNREADABLE_RETRY_MS
        )
        now_s = self._monotonic_s()
        # Of a client with a share it may be that; whoever else has the same trouble will be told.
        position = len(plan.windows) if plan.scopes[-1] == SCOPE_CLIENT else 1
        subject = plan.subject(position)
        self.refusals.remember(subject, refusal, demand_tokens=demand_tokens, now_s=now_s)
        return refusal

    def _refused(self, plan: Plan, demand_tokens: int, reply: list[Reply]) -> Refusal:
        position = int(reply[2])
        gate = plan.gate(Gate(reply[1].decode()), position)
        if gate is Gate.DAY_STALE:  # twice: the server's own day cannot be told; ask again soon
            return Refusal(gate=gate, scope=plan.scope(0), retry_after_ms=DAY_STALE_RETRY_MS)
        refusal = Refusal(gate=gate, scope=plan.scope(position), retry_after_ms=int(reply[3]))
        if gate in HEALTH_GATES:
            record = plan.health[position > len(plan.windows)]
            self.bars.refused(record, gate, refusal.retry_after_ms, self._monotonic_s())
            return refusal
        if self._stand_in is not None:
            self._stand_in.note_refusal(plan, position, refusal)
        self.refusals.remember(
            plan.subject(position),
            refusal,
            demand_tokens=demand_tokens,
            now_s=self._monotonic_s(),
        )
        return refusal
