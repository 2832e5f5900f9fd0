"""Which windows a target is held to, and the calendar arithmetic Redis scripts cannot do.

Minute windows are a ring of 60 one-second buckets plus two: one because buckets count whole, one
because dispatch may take a second. Day windows are a ring of 24 one-hour buckets plus one, or a
calendar day in a zone. The rings live in
`lua/lib/ring.lua`; this module names limits and computes day ids and absolute day ends.
"""

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from cluster_gw.units import MS_PER_S

MINUTE_BUCKETS: Final = 62  # 60, one for rounding, one for dispatch (decision 0007)
MINUTE_WIDTH_MS: Final = 1000
DAY_BUCKETS: Final = 25  # 24 one-hour buckets and one guard
DAY_WIDTH_MS: Final = 3_600_000
ROLLING: Final = "rolling"


class Gate(StrEnum):
    """What refused an admission; equal by test to the codes of `lua/lib/codes.lua`."""

    RPM = "rpm"
    RPD = "rpd"
    TPM = "tpm"
    TPD = "tpd"
    CONCURRENCY = "concurrency"
    DAY_STALE = "day_stale"
    TOO_LARGE = "too_large"  # the demand alone exceeds a token limit: waiting never helps
    PROVIDER_MINUTE_CAP = "provider_minute_cap"  # of the key over all its models (`caps.py`)
    PROVIDER_DAILY_CAP = "provider_daily_cap"
    PROVIDER_DAILY_TOKEN_CAP = "provider_daily_token_cap"  # noqa: S105 - a name, no secret
    MONTHLY_BUDGET_CAP = "monthly_budget_cap"
    COOLDOWN = "cooldown"  # it rests (`rest.py`)
    BREAKER_OPEN = "breaker_open"
    BENCH = "bench"  # the model rests on all its keys (`bench.py`); found before Redis is asked
    PROVIDER_OPEN = "provider_open"  # several targets of the provider failed at once (`outage.py`)
    KEY_INVALID = "key_invalid"  # rejected by its provider (`key_status.py`); found likewise
    MODEL_RETIRED = "model_retired"  # by its provider (`model_status.py`); found likewise
    RECORD_UNREADABLE = "record_unreadable"  # what Redis holds of it cannot be read
    TRIAL_TAKEN = "trial_taken"  # one request tries it; nobody else may until that has ended


NEVER_BY_WAITING: Final = frozenset(
    {Gate.TOO_LARGE, Gate.KEY_INVALID, Gate.MODEL_RETIRED, Gate.RECORD_UNREADABLE}
)
"""Gates that no wait opens: the request or an operator must change something."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Upper bounds of one scope, at least 0; None means not limited, 0 admits nothing."""

    rpm: int | None = None
    rpd: int | None = None
    tpm: int | None = None
    tpd: int | None = None
    concurrency: int | None = None

    def is_unlimited(self) -> bool:
        """Whether no bound is set, so the scope needs no window of its own."""
        return (self.rpm, self.rpd, self.tpm, self.tpd, self.concurrency) == (None,) * 5


class CalendarDay(msgspec.Struct, frozen=True, kw_only=True):
    """A calendar day of some zone as the scripts take it.

    Attributes:
        id: yyyymmdd as an integer; 0 for a rolling day.
        end_ms: first instant after the day, ms since the epoch; 0 for a rolling day.
    """

    id: int
    end_ms: int


def calendar_day(now_ms: int, zone: str) -> CalendarDay:
    """Tell the day that contains `now_ms` in `zone`; days of 23 and 25 hours come out right.

    Args:
        now_ms: ms since the epoch.
        zone: an IANA zone name, or `rolling`.

    Raises:
        zoneinfo.ZoneInfoNotFoundError: the zone is unknown (configuration refuses it earlier).
    """
    if zone == ROLLING:
        return CalendarDay(id=0, end_ms=0)
    tz = ZoneInfo(zone)
    local = datetime.fromtimestamp(now_ms / MS_PER_S, tz)
    # Wall-clock arithmetic first, then the zone: adding 24 h to an instant is wrong on DST days.
    tomorrow = datetime(local.year, local.month, local.day, tzinfo=tz) + timedelta(days=1)
    end = datetime(tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=tz).astimezone(UTC)
    return CalendarDay(
        id=local.year * 10_000 + local.month * 100 + local.day,
        end_ms=round(end.timestamp() * MS_PER_S),
    )
