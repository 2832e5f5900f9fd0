"""Whether one more attempt may be started."""

from enum import StrEnum
from typing import Final

import msgspec

ALWAYS_ALLOWED: Final = 2  # the time budget never forbids the first retry


class AttemptPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds on the attempts of one request.

    Attributes:
        max: attempts at most, at least 1.
        time_budget_ms: no further attempt is started after this; 0 is off.
        max_consecutive_fails: upstream failures in a row before the request gives up; 0 is off.
    """

    max: int = 20
    time_budget_ms: int = 45_000
    max_consecutive_fails: int = 0


class StopReason(StrEnum):
    """Why no further attempt is made."""

    NO_CANDIDATE = "no_candidate"  # the ranking is used up
    ATTEMPTS = "attempts"
    TIME_BUDGET = "time_budget"
    CONSECUTIVE_FAILS = "consecutive_fails"
    DEADLINE = "deadline"  # the client's own deadline
    FATAL = "fatal"  # the fault cannot be cured by another candidate


class AttemptPlanner(msgspec.Struct, gc=False):
    """Counts the attempts of one request against its policy; has no clock of its own.

    Attributes:
        policy: the bounds.
        started_ms: when the request began, on the clock of every later `now_ms`.
        fails: attempts that failed, of those that blame an upstream.
    """

    policy: AttemptPolicy
    started_ms: int
    fails: int = 0

    def record(self, *, blames_upstream: bool) -> None:
        """Note that an attempt failed; neutral failures neither count nor break the row."""
        if blames_upstream:
            self.fails += 1

    def may_start(self, index: int, now_ms: int) -> bool:
        """Whether attempt `index` (from 0) may be started now."""
        return self.stop_reason(index, now_ms) is None

    def stop_reason(self, index: int, now_ms: int) -> StopReason | None:
        """Tell why attempt `index` (from 0) may not be started now; None when it may."""
        return self._stop(index, now_ms, self.fails)

    def would_start_another(self, index: int, remaining_candidates: int, now_ms: int) -> bool:
        """Whether a failure of attempt `index` now would be followed by another attempt."""
        if remaining_candidates <= 0:
            return False
        return self._stop(index + 1, now_ms, self.fails + 1) is None

    def hedge_remaining_ms(self, index: int, now_ms: int) -> int | None:
        """How long attempt `index` may wait for its first byte; None when unbound."""
        if index < ALWAYS_ALLOWED or not self.policy.time_budget_ms:
            return None
        return max(0, self.started_ms + self.policy.time_budget_ms - now_ms)

    def _stop(self, index: int, now_ms: int, fails: int) -> StopReason | None:
        policy = self.policy
        if index >= policy.max:
            return StopReason.ATTEMPTS
        if 0 < policy.max_consecutive_fails <= fails:
            return StopReason.CONSECUTIVE_FAILS
        spent_ms = now_ms - self.started_ms
        if index >= ALWAYS_ALLOWED and 0 < policy.time_budget_ms <= spent_ms:
            return StopReason.TIME_BUDGET
        return None
