"""Admission and settlement of one target while its part of Redis is away (`store/alone.py`)."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Gate
from cluster_gw.store.ailments import Ailments
from cluster_gw.store.alone import Alone
from cluster_gw.store.bars import HEALTH_GATES, Bars
from cluster_gw.store.bounds import FIVE, bounds_of
from cluster_gw.store.lease import NO_OUTCOME, Lease, Outcome, Refusal, Settlement, TargetLimits
from cluster_gw.store.ledger import Facts, Unit
from cluster_gw.store.packing import bulk
from cluster_gw.store.plan import NO_LIMIT, Plan, Plans, caps_of
from cluster_gw.store.settlement import SettlementQueue
from cluster_gw.units import MS_PER_S, LeaseId

MINUTE_GATES: Final = frozenset({Gate.RPM, Gate.TPM})


class StandIn:
    """What `Admissions` asks instead of Redis.

    Args:
        alone: of the worker.
        plans: targets in the words of the scripts.
        settlements: of the worker.
        bars: what the worker knows to be barred while Redis is there.

    Attributes:
        heard: the last lease that Redis gave for each target; written by `Admissions`.
    """

    def __init__(
        self, alone: Alone, plans: Plans, settlements: SettlementQueue, bars: Bars
    ) -> None:
        self.heard: dict[TargetLimits, Lease] = {}
        self._alone = alone
        self._plans = plans
        self._settlements = settlements
        self._bars = bars
        self._ailments = Ailments(alone.monotonic_s)
        alone.tell_again(settlements.take_told)
        alone.before_share(self._tell_what_was_heard)
        alone.before_loss(self._take_over_bars)
        alone.when_trusted(self.heard.clear)  # whatever was heard before is void
        alone.when_ended(self._ailments.forget)

    def has_to_serve(self, plan: Plan) -> bool:
        """Whether the part of Redis that has the target is away."""
        return self._alone.has_to_serve(plan.keys[0])

    def reserve(
        self,
        plan: Plan,
        target: TargetLimits,
        lease_id: LeaseId,
        demand: Demand,
        *,
        ttl_ms: int,
        register: Callable[[int], Awaitable[object]],
    ) -> Lease | Refusal:
        """Take a request's part of the worker's own share.

        Raises:
            AwayError: nothing is let in without Redis.
        """
        self._alone.admitting_workers()
        key = plan.keys[0]
        barred = self._ailments.barring(plan.health)
        if barred is not None:
            self._alone.refusals += 1
            return barred
        shortage = self._alone.admit(
            key, lease_id, bounds_of(plan, target, demand), ttl_ms, register
        )
        if shortage is not None:
            scope = plan.scope(shortage.bound.position)
            if shortage.never:
                return Refusal(gate=Gate.TOO_LARGE, scope=scope, retry_after_ms=0)
            wait_ms = self._alone.wait_ms(shortage)
            return Refusal(gate=Gate(shortage.bound.gate), scope=scope, retry_after_ms=wait_ms)
        return Lease(
            id=lease_id,
            target=target,
            estimate_tokens=demand.total_tokens,
            prompt_tokens=demand.input_tokens,
            admitted_at_s=self._alone.monotonic_s(),
            is_local=True,
        )

    def settle(self, plan: Plan, lease: Lease, settlement: Settlement) -> None:
        """Settle a lease that was given here."""
        self._ailments.ended(plan.health, settlement.health)
        facts = Facts(requests=int(settlement.counts_request), tokens=settlement.tokens)
        late = partial(self._settle_late, plan, lease, settlement)
        self._alone.finish(lease.id, facts, late)

    def note_end(self, plan: Plan, lease: Lease, settlement: Settlement) -> None:
        """A lease of Redis has ended: its slots are free, also where Redis cannot be told yet."""
        was_pledged = self._alone.ledger.end_pledged(lease.id)
        if not self.has_to_serve(plan):
            return
        self._ailments.ended(plan.health, settlement.health)
        if not was_pledged:
            self._alone.ledger.free(plan.windows, Gate.CONCURRENCY, lease.admitted_at_s)

    def narrow(
        self, plan: Plan, target: TargetLimits, lease_id: LeaseId, demand: Demand
    ) -> bytes | None:
        """What to ask Redis for instead of the limits of a target, None for these (0040).

        Within this worker's share the limits themselves hold, else as much is kept free as all
        workers may have spent and not told yet.
        """
        doubt = self._alone.caution(plan.keys[0])
        if doubt is None or self._alone.pledge(doubt, lease_id, bounds_of(plan, target, demand)):
            return None
        caps: tuple[int, ...] = ()
        if target.caps.needs_record():
            caps = caps_of(target.caps, target.token_weight)
        narrow = (
            bound if bound == NO_LIMIT else self._alone.narrowed(bound)
            for bound in (*plan.limits, *caps[:-1])
        )
        return bulk(*narrow, *caps[-1:])

    def held_back(self, plan: Plan, demand: Demand, gate: Gate, position: int) -> Refusal | None:
        """What a refusal by narrowed limits means; None when it holds for the limits as well.

        Args:
            plan: of the target.
            demand: how much of it was asked for.
            gate: that refused, as the limits name it.
            position: of what refused.
        """
        if gate in HEALTH_GATES or gate is Gate.DAY_STALE:
            return None
        if gate is Gate.TOO_LARGE:
            places = (at for at, (_, _, unit) in enumerate(FIVE) if unit is Unit.TOKENS)
            tokens = [limit for at in places for limit in plan.limits[at :: len(FIVE)]]
            if any(NO_LIMIT != limit < demand.total_tokens for limit in tokens):
                return None
            gate = Gate.TPM
        doubt = self._alone.caution(plan.keys[0])
        wait_ms = 0 if doubt is None else round(self._alone.held_back_s(doubt) * MS_PER_S)
        scope = plan.scope(position)
        return Refusal(gate=gate, scope=scope, retry_after_ms=wait_ms, is_held_back=True)

    def is_rash(self, plan: Plan, lease_id: LeaseId) -> bool:
        """Whether a lease was given by the limits themselves, to a call from before the loss.

        It waited in a server that was frozen, while others spent their shares.
        """
        if self._alone.caution(plan.keys[0]) is None:
            return False
        return not self._alone.ledger.is_pledged(lease_id)

    def refused(self, lease_id: LeaseId) -> None:
        """Redis refused what was taken of the share."""
        self._alone.ledger.unpledge(lease_id)

    def note_refusal(self, plan: Plan, position: int, refusal: Refusal) -> None:
        """Redis refused at a limit: nothing is left of it.

        Args:
            plan: of the target.
            position: of what refused, counted from 1.
            refusal: what it said.
        """
        if position > len(plan.windows):
            return  # a cap of a day: looks tell of it
        for place, (gate, _, _) in enumerate(FIVE):
            if plan.gate(gate, position) is refusal.gate:
                limit = plan.limits[len(FIVE) * (position - 1) + place]
                window, now_s = plan.windows[position - 1], self._alone.monotonic_s()
                self._alone.ledger.learn(window, {refusal.gate.value: limit}, now_s)

    def _settle_late(self, plan: Plan, lease: Lease, settlement: Settlement, age_s: float) -> None:
        self._settlements.add_late(
            plan,
            lease.target.day_reset,
            lease.id,
            Settlement(
                counts_request=settlement.counts_request,
                tokens=settlement.tokens,
                outcome=settlement.outcome,
                health=aged(settlement.health, age_s),
                consumed=settlement.consumed,
            ),
            age_s=age_s,
        )

    def _take_over_bars(self) -> None:
        self._ailments.take_over(self._bars.known(self._alone.monotonic_s()))

    def _tell_what_was_heard(self) -> None:
        """Hand on what the last replies said.

        What a reply said was left of the tightest window was left of each, at least.
        """
        for target, lease in self.heard.items():
            plan = self._plans.of(target)
            left = {Gate.RPM: lease.requests_left, Gate.TPM: lease.tokens_left}
            for place, window in enumerate(plan.windows):
                used = {
                    plan.gate(gate, place + 1).value: plan.limits[len(FIVE) * place + at]
                    - left[gate]
                    for at, (gate, _, _) in enumerate(FIVE)
                    if gate in MINUTE_GATES and plan.limits[len(FIVE) * place + at] != NO_LIMIT
                }
                self._alone.ledger.learn(window, used, lease.admitted_at_s)
        self.heard.clear()


def aged(health: Outcome, age_s: float) -> Outcome:
    """What the end of a call still says about its target after that time.

    Args:
        health: what it said.
        age_s: since the call began.
    """
    age_ms, rest = round(age_s * MS_PER_S), health.cooldown
    if age_ms > health.breaker.cooldown_ms and (rest is None or rest.wait_ms <= age_ms):
        return NO_OUTCOME
    return health
