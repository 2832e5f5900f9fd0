"""What Redis keeps of the health of a target, or of its key over all models: the model.

Rest, breaker and streak each have their rule (`rest.py`, `breaker.py`, `streak.py`); this is how
the admission scripts join them, and to which of the two records an end goes. Tests hold both
against each other, and whoever works in virtual time follows it. Times are the server's, ms since
the epoch.
"""

from typing import Final

import msgspec

from cluster_gw.core.limits.breaker import (
    Admit,
    Breaker,
    BreakerPolicy,
    BreakerState,
    Effect,
    Evidence,
    Report,
    step,
)
from cluster_gw.core.limits.cooldown import Cooldown, Scope
from cluster_gw.core.limits.rest import Rest, apply, is_resting, owes_trial, succeed
from cluster_gw.core.limits.streak import NO_STREAK, extend
from cluster_gw.core.limits.windows import Gate

TRIAL_RETRY_MS: Final = 1000
NEVER_RESTED: Final = Rest()
NEVER_FAILED: Final = Breaker()


class HealthEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the end of a lease says.

    Attributes:
        token: the lease id.
        generation: what its admission answered.
        reserved_at_ms: when that was.
        evidence: for the breaker of the target.
        policy: by which the breaker is judged.
        cooldown: a rest of the target or its key; None for none.
        is_exempt: none of it holds unless it is the third such end in a row.
    """

    token: str
    generation: int
    reserved_at_ms: int
    evidence: Evidence = Evidence.NEUTRAL
    policy: BreakerPolicy = BreakerPolicy()
    cooldown: Cooldown | None = None
    is_exempt: bool = False


class HealthRecord:
    """One record, changed in place.

    Attributes:
        rest: what is remembered of rests.
        breaker: the breaker.
        streak: failures that are forgiven so far; of a target only.
    """

    __slots__ = ("breaker", "rest", "streak")

    def __init__(self) -> None:
        self.rest = NEVER_RESTED
        self.breaker = NEVER_FAILED
        self.streak = NO_STREAK

    def is_empty(self) -> bool:
        """Whether nothing is recorded."""
        known = (self.rest, self.breaker, self.streak)
        return known == (NEVER_RESTED, NEVER_FAILED, NO_STREAK)

    def closed_gates(
        self, token: str, policy: BreakerPolicy, now_ms: int
    ) -> list[tuple[Gate, int]]:
        """Which gates are closed for a lease, each with the ms until it may be asked again."""
        if self._is_plain():
            return []
        gates = []
        if is_resting(self.rest, now_ms):
            gates.append((Gate.COOLDOWN, self.rest.until_ms - now_ms))
        _, answer = step(self.breaker, self._admit(token, now_ms, now_ms), policy, now_ms)
        left_ms = answer.retry_at_ms - now_ms
        if answer.effect is Effect.REFUSE_OPEN:
            gates.append((Gate.BREAKER_OPEN, left_ms))
        elif answer.effect is Effect.REFUSE_TAKEN and not gates:
            gates.append((Gate.TRIAL_TAKEN, min(left_ms, TRIAL_RETRY_MS)))
        return gates

    def admit(self, token: str, expiry_ms: int, policy: BreakerPolicy, now_ms: int) -> Effect:
        """Let a lease in that every gate lets through."""
        if self._is_plain():
            return Effect.PASS
        event = self._admit(token, expiry_ms, now_ms)
        self.breaker, answer = step(self.breaker, event, policy, now_ms)
        return answer.effect

    def report(
        self, token: str, generation: int, evidence: Evidence, policy: BreakerPolicy, now_ms: int
    ) -> None:
        """Tell the breaker how a lease ended."""
        if self._is_plain() and not self.breaker.fails and evidence is not Evidence.FAILURE:
            return
        event = Report(token=token, gen=generation, evidence=evidence)
        self.breaker, _ = step(self.breaker, event, policy, now_ms)

    def _is_plain(self) -> bool:
        """Whether nothing speaks against a lease, and none has to be a trial: mostly so."""
        return self.breaker.state is BreakerState.CLOSED and not self.rest.until_ms

    def _admit(self, token: str, until_ms: int, now_ms: int) -> Admit:
        owes = owes_trial(self.rest, now_ms)
        return Admit(token=token, until_ms=until_ms, owes_trial=owes)


def settle_health(
    target: HealthRecord, key: HealthRecord, end: HealthEnd, *, now_ms: int, day_spent: bool
) -> bool:
    """Book the end of a lease; whether one that might have been forgiven was booked.

    Args:
        target: the record of the model on its key.
        key: the record of that key over all models.
        end: what is booked.
        now_ms: the server's clock.
        day_spent: a day's limit of the target is used up by our own count.
    """
    end, is_booked = _weigh_streak(target, end, now_ms)
    for record, scope in ((target, Scope.TARGET), (key, Scope.KEY)):
        evidence, reserved_at_ms = end.evidence, end.reserved_at_ms
        if end.cooldown is not None and end.cooldown.scope is scope:
            record.rest = apply(
                record.rest,
                end.cooldown,
                reserved_at_ms=reserved_at_ms,
                now_ms=now_ms,
                day_spent=day_spent,
            )
        elif evidence is Evidence.SUCCESS:
            record.rest = succeed(record.rest, reserved_at_ms=reserved_at_ms, now_ms=now_ms)
        if scope is Scope.KEY and evidence is Evidence.FAILURE:
            evidence = Evidence.NEUTRAL  # one model's trouble is none of the key's others
        record.report(end.token, end.generation, evidence, end.policy, now_ms)
    return is_booked


def _weigh_streak(record: HealthRecord, end: HealthEnd, now_ms: int) -> tuple[HealthEnd, bool]:
    if end.is_exempt:
        record.streak, is_booked = extend(record.streak, now_ms)
        if is_booked:
            return end, True
        forgiven = HealthEnd(
            token=end.token, generation=end.generation, reserved_at_ms=end.reserved_at_ms
        )
        return forgiven, False
    if end.evidence is not Evidence.NEUTRAL or end.cooldown is not None:
        record.streak = NO_STREAK
    return end, False
