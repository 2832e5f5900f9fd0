"""What health adds to admission and settlement, in plain Python: records of target and key.

The rules are those of `core/limits`; this only says to which record they apply, and when.
"""

from dataclasses import dataclass, field
from typing import Final

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
from cluster_gw.core.limits.cooldown import Scope
from cluster_gw.core.limits.rest import Rest, apply, is_resting, owes_trial, succeed
from cluster_gw.core.limits.streak import NO_STREAK, Streak, extend
from cluster_gw.store.lease import Outcome

TRIAL_RETRY_MS: Final = 1000
POLICY: Final = BreakerPolicy(threshold=2, cooldown_ms=30_000)


@dataclass
class Record:
    rest: Rest = field(default_factory=Rest)
    breaker: Breaker = field(default_factory=Breaker)
    streak: Streak = NO_STREAK

    def is_empty(self) -> bool:
        return (self.rest, self.breaker, self.streak) == (Rest(), Breaker(), NO_STREAK)

    def closed_gates(self, token: str, position: int, now_ms: int) -> list[tuple[str, int, int]]:
        gates = []
        if is_resting(self.rest, now_ms):
            gates.append(("cooldown", position, self.rest.until_ms - now_ms))
        _, answer = step(self.breaker, self._admit(token, now_ms, now_ms), POLICY, now_ms)
        left_ms = answer.retry_at_ms - now_ms
        if answer.effect is Effect.REFUSE_OPEN:
            gates.append(("breaker_open", position, left_ms))
        elif answer.effect is Effect.REFUSE_TAKEN and not gates:
            gates.append(("trial_taken", position, min(left_ms, TRIAL_RETRY_MS)))
        return gates

    def admit(self, token: str, expiry_ms: int, now_ms: int) -> Effect:
        event = self._admit(token, expiry_ms, now_ms)
        self.breaker, answer = step(self.breaker, event, POLICY, now_ms)
        return answer.effect

    def report(self, token: str, generation: int, evidence: Evidence, now_ms: int) -> None:
        event = Report(token=token, gen=generation, evidence=evidence)
        self.breaker, _ = step(self.breaker, event, POLICY, now_ms)

    def _admit(self, token: str, until_ms: int, now_ms: int) -> Admit:
        owes = owes_trial(self.rest, now_ms)
        return Admit(token=token, until_ms=until_ms, owes_trial=owes)

    def fields(self) -> dict[str, str]:
        """What the hash holds; `until` only while it means something."""
        rest, breaker = self.rest, self.breaker
        numbers = {
            "rest_until": rest.until_ms,
            "rest_set_at": rest.set_at_ms,
            "limited_at": rest.limited_at_ms,
            "fails": breaker.fails,
            "opened_at": breaker.opened_at_ms,
            "gen": breaker.gen,
            "trial_until": breaker.trial_until_ms,
            "streak": self.streak.count,
            "streak_at": self.streak.at_ms,
        }
        texts = {
            "rest_source": rest.source,
            "rest_reason": rest.reason,
            "hits": " ".join(map(str, rest.hits)),
            "trial": breaker.trial,
            "breaker": breaker.state if breaker.gen else None,
        }
        if breaker.state is BreakerState.OPEN:
            numbers["until"] = breaker.opened_at_ms + POLICY.cooldown_ms
        shown = {name: str(number) for name, number in numbers.items() if number}
        return shown | {name: str(text) for name, text in texts.items() if text}


class HealthModel:
    """The records of some targets and of their one key."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}

    def of(self, name: str) -> Record:
        return self.records.setdefault(name, Record())

    def unwell(
        self, names: tuple[str, str], windows: int, token: str, now_ms: int
    ) -> list[tuple[str, int, int]]:
        """Which gates of health are closed, as (code, position, ms)."""
        target, key = (self.of(name) for name in names)
        return [
            *target.closed_gates(token, 1, now_ms),
            *key.closed_gates(token, windows + 1, now_ms),
        ]

    def admit(self, names: tuple[str, str], token: str, expiry_ms: int, now_ms: int) -> list[int]:
        """Give what the reply tells: nothing without a record, else generation, trial, now."""
        records = [self.of(name) for name in names]
        if all(record.is_empty() for record in records):
            return []
        effects = {record.admit(token, expiry_ms, now_ms) for record in records}
        assert effects <= {Effect.PASS, Effect.TRIAL}
        return [records[0].breaker.gen, int(Effect.TRIAL in effects), now_ms]

    def settle(
        self,
        names: tuple[str, str],
        token: str,
        told: tuple[int, int],
        outcome: Outcome,
        *,
        now_ms: int,
        day_spent: bool,
    ) -> bool:
        """Book the end of a lease; whether one that might have been forgiven was booked."""
        generation, reserved_at_ms = told
        outcome, is_booked = self.weigh_streak(self.of(names[0]), outcome, now_ms)
        for name, scope in zip(names, (Scope.TARGET, Scope.KEY), strict=True):
            record, evidence = self.of(name), outcome.evidence
            rest = outcome.cooldown
            if rest is not None and rest.scope is scope:
                record.rest = apply(
                    record.rest,
                    rest,
                    reserved_at_ms=reserved_at_ms,
                    now_ms=now_ms,
                    day_spent=day_spent,
                )
            elif evidence is Evidence.SUCCESS:
                record.rest = succeed(record.rest, reserved_at_ms=reserved_at_ms, now_ms=now_ms)
            if scope is Scope.KEY and evidence is Evidence.FAILURE:
                evidence = Evidence.NEUTRAL
            record.report(token, generation, evidence, now_ms)
        return is_booked

    @staticmethod
    def weigh_streak(record: Record, outcome: Outcome, now_ms: int) -> tuple[Outcome, bool]:
        if outcome.is_exempt:
            record.streak, is_booked = extend(record.streak, now_ms)
            return (outcome, True) if is_booked else (Outcome(), False)
        if outcome.evidence is not Evidence.NEUTRAL or outcome.cooldown is not None:
            record.streak = NO_STREAK
        return outcome, False

    def release(self, names: tuple[str, str], token: str, now_ms: int) -> None:
        """The worker of a lease is dead: another may try."""
        for name in names:
            record = self.of(name)
            if record.breaker.state is BreakerState.HALF_OPEN:
                record.report(token, 0, Evidence.NEUTRAL, now_ms)
