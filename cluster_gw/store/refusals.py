"""What a worker remembers of refusals, so that it does not ask Redis again in vain.

A refused target is not asked again before its gate may open, and never longer than a second: a
limit may be raised, or capacity returned, at any moment. Room 6. No clock of its own.
"""

from collections.abc import Hashable
from typing import Final

import msgspec

from cluster_gw.core.limits.windows import Gate
from cluster_gw.store.lease import Refusal

REMEMBER_MAX_S: Final = 1.0
MAX_ENTRIES: Final = 10_000
TOKEN_GATES: Final = frozenset(
    {
        Gate.TPM,
        Gate.TPD,
        Gate.TOO_LARGE,
        Gate.PROVIDER_DAILY_TOKEN_CAP,
        Gate.MONTHLY_BUDGET_CAP,
    }
)


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal, when its gate may open, and until when it is believed (monotonic seconds)."""

    refusal: Refusal
    demand_tokens: int
    opens_at_s: float
    until_s: float


class Refusals:
    """A bounded memory of refusals by subject: whatever hashable names the refused window.

    Attributes:
        entries: for those who only ask whether there are any, as each request does.
    """

    def __init__(self, *, max_entries: int = MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self.entries: dict[tuple[Hashable, bool], Remembered] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def remember(
        self, subject: Hashable, refusal: Refusal, *, demand_tokens: int, now_s: float
    ) -> None:
        """Keep a refusal of `subject`; token gates bar only demands at least as large."""
        place = (subject, refusal.gate in TOKEN_GATES)
        before = self.entries.pop(place, None)
        opens_at_s = now_s + refusal.retry_after_ms / 1000
        # Demands that are too large never fit; the cap still lets a changed limit through.
        believed_s = REMEMBER_MAX_S if refusal.gate is Gate.TOO_LARGE else opens_at_s - now_s
        entry = Remembered(
            refusal=refusal,
            demand_tokens=demand_tokens,
            opens_at_s=opens_at_s,
            until_s=now_s + min(believed_s, REMEMBER_MAX_S),
        )
        if before is not None and now_s < before.until_s and before.demand_tokens < demand_tokens:
            entry = before  # still true, and it bars more
        self.entries[place] = entry
        if len(self.entries) > self._max_entries:
            self._shrink(now_s)

    def barring(self, subject: Hashable, *, demand_tokens: int, now_s: float) -> Refusal | None:
        """Give the refusal that still stands against a demand on `subject`, with the time left."""
        for is_token in (False, True):
            entry = self.entries.get((subject, is_token))
            if entry is None:
                continue
            if now_s >= entry.until_s:
                del self.entries[subject, is_token]
            elif not is_token or demand_tokens >= entry.demand_tokens:
                left_ms = max(0, round((entry.opens_at_s - now_s) * 1000))
                return Refusal(
                    gate=entry.refusal.gate, scope=entry.refusal.scope, retry_after_ms=left_ms
                )
        return None

    def forget_slot(self, subject: Hashable) -> None:
        """Ask again at once: this worker has just freed a slot of `subject`."""
        entry = self.entries.get((subject, False))
        if entry is not None and entry.refusal.gate is Gate.CONCURRENCY:
            del self.entries[subject, False]

    def _shrink(self, now_s: float) -> None:
        alive = [(place, entry) for place, entry in self.entries.items() if now_s < entry.until_s]
        # Half, so that a full memory is not swept for each new refusal; the oldest go first.
        self.entries = dict(alive[-(self._max_entries // 2) :])
