"""What the caps of a key promise, in plain Python; written from `lua/lib/caps.lua`'s description.

The state machine in `test_caps_machine.py` holds both against each other.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from cluster_gw.core.limits.caps import WEIGHT_SCALE, Caps
from tests.lua.admission_model import MARK_MS

DAY_MS: Final = 86_400_000
MONTH_MAX_MS: Final = 31 * DAY_MS


@dataclass
class Period:
    """A day or a month: its id, the first instant after it, and what it has used."""

    id: int
    ends_ms: int
    used: list[int]


@dataclass
class Taken:
    """A lease."""

    worker: str
    expiry_ms: int
    day: int
    month: int
    estimate: int
    prompt: int
    weight: int
    state: str = "R"


@dataclass
class CapsModel:
    """One key: requests and weighted tokens of the day, tokens of the month."""

    day: Period | None = None
    month: Period | None = None
    leases: dict[str, Taken] = field(default_factory=dict)

    def closed(
        self, caps: Caps, *, weight: int, estimate: int, now_ms: int
    ) -> list[tuple[str, int]]:
        """Take back what has expired and give the gates that refuse: code and ms to wait."""
        self.expire(now_ms)
        day, month = self.at(now_ms)
        weighted = None if caps.tpd is None else caps.tpd * WEIGHT_SCALE
        if (weighted is not None and estimate * weight > weighted) or (
            caps.monthly_tokens is not None and estimate > caps.monthly_tokens
        ):
            return [("too_large", 0)]
        return [
            (code, ends_ms - now_ms)
            for code, used, cap, ends_ms in (
                ("provider_daily_cap", day.used[0] + 1, caps.rpd, day.ends_ms),
                (
                    "provider_daily_token_cap",
                    day.used[1] + estimate * weight,
                    weighted,
                    day.ends_ms,
                ),
                (
                    "monthly_budget_cap",
                    month.used[0] + estimate,
                    caps.monthly_tokens,
                    month.ends_ms,
                ),
            )
            if cap is not None and used > cap
        ]

    def take(self, name: str, lease: Taken, now_ms: int) -> None:
        self.day, self.month = self.at(now_ms)
        self.add(1, lease.estimate, lease.weight)
        lease.day, lease.month = self.day.id, self.month.id
        self.leases[name] = lease

    def settle(
        self, name: str, *, actual: int, counts_request: int, now_ms: int, late_weight: int | None
    ) -> None:
        """Correct what is held; charge in full where nothing is, if `late_weight` says so."""
        lease = self.leases.pop(name, None)
        if lease is not None:
            more = actual - (lease.prompt if lease.state == "X" else lease.estimate)
            self.correct(lease, counts_request - 1, more)
        elif late_weight is not None and counts_request + actual > 0:
            self.day, self.month = self.at(now_ms)
            self.add(counts_request, actual, late_weight)

    def expire(self, now_ms: int) -> None:
        for name, lease in list(self.leases.items()):
            if lease.state == "R" and lease.expiry_ms <= now_ms:
                lease.state = "X"
                self.correct(lease, 0, lease.prompt - lease.estimate)
            if lease.state == "X" and lease.expiry_ms + MARK_MS <= now_ms:
                del self.leases[name]

    def at(self, now_ms: int) -> tuple[Period, Period]:
        """Day and month in the present, which is only kept when something is counted."""
        today = datetime.fromtimestamp(now_ms // DAY_MS * DAY_MS / 1000, UTC)
        first = today.replace(day=1)
        following = (first + timedelta(days=31)).replace(day=1)
        day = Period(int(f"{today:%Y%m%d}"), ms(today) + DAY_MS, [0, 0])
        month = Period(int(f"{today:%Y%m}"), ms(following), [0])
        kept_day, kept_month = self.day, self.month
        if kept_day is None or kept_month is None:
            return day, month
        if now_ms < kept_day.ends_ms <= now_ms + 2 * DAY_MS:
            return kept_day, kept_month
        if now_ms < kept_day.ends_ms:
            day.used = list(kept_day.used)
        if now_ms < kept_month.ends_ms:
            month.used = list(kept_month.used)
            if kept_month.ends_ms <= now_ms + 2 * MONTH_MAX_MS:
                month = kept_month
        return day, month

    def add(self, requests: int, tokens: int, weight: int) -> None:
        assert self.day is not None
        assert self.month is not None
        self.day.used[0] += requests
        self.day.used[1] += tokens * weight
        self.month.used[0] += tokens

    def correct(self, lease: Taken, requests: int, tokens: int) -> None:
        if self.day is not None and lease.day >= self.day.id:
            self.day.used[0] = max(0, self.day.used[0] + requests)
            self.day.used[1] = max(0, self.day.used[1] + tokens * lease.weight)
        if self.month is not None and lease.month >= self.month.id:
            self.month.used[0] = max(0, self.month.used[0] + tokens)


def ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
