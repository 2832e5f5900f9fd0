"""What health adds to admission and settlement, in plain Python: records of target and key.

The rules are those of `core/limits/health_record.py`; this says which names the records have.
"""

from typing import Final

from cluster_gw.core.limits.breaker import BreakerPolicy, BreakerState, Effect, Evidence
from cluster_gw.core.limits.health_record import HealthEnd, HealthRecord, settle_health
from cluster_gw.store.lease import Outcome

POLICY: Final = BreakerPolicy(threshold=2, cooldown_ms=30_000)


class Record(HealthRecord):
    def gates(self, token: str, position: int, now_ms: int) -> list[tuple[str, int, int]]:
        found = self.closed_gates(token, POLICY, now_ms)
        return [(gate.value, position, wait_ms) for gate, wait_ms in found]

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
            *target.gates(token, 1, now_ms),
            *key.gates(token, windows + 1, now_ms),
        ]

    def admit(self, names: tuple[str, str], token: str, expiry_ms: int, now_ms: int) -> list[int]:
        """Give what the reply tells: nothing without a record, else generation, trial, now."""
        records = [self.of(name) for name in names]
        if all(record.is_empty() for record in records):
            return []
        effects = {record.admit(token, expiry_ms, POLICY, now_ms) for record in records}
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
        target, key = (self.of(name) for name in names)
        end = HealthEnd(
            token=token,
            generation=generation,
            reserved_at_ms=reserved_at_ms,
            evidence=outcome.evidence,
            policy=POLICY,
            cooldown=outcome.cooldown,
            is_exempt=outcome.is_exempt,
        )
        return settle_health(target, key, end, now_ms=now_ms, day_spent=day_spent)

    def release(self, names: tuple[str, str], token: str, now_ms: int) -> None:
        """The worker of a lease is dead: another may try."""
        for name in names:
            record = self.of(name)
            if record.breaker.state is BreakerState.HALF_OPEN:
                record.report(token, 0, Evidence.NEUTRAL, POLICY, now_ms)
