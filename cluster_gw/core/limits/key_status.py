"""Whether a credential is good, as far as its provider was asked: pure.

A key is refused before admission once the provider has rejected it in a check of its own; what a
provider that is away, sick or busy answers never changes that. Only a good check brings it back,
and it does so by itself. Times are the server's, ms since the epoch. The same rules stand in
`lua/health/judge.lua`.
"""

from enum import StrEnum
from typing import Final

import msgspec

from cluster_gw.units import MS_PER_S

RECENT_RATIO: Final = 0.7  # of the interval: 3.5 of 5 min, so that each pass finds its keys due
DISABLED_INTERVALS: Final = 12  # an hour, with the usual 5 min
PASS_RATIO: Final = 0.5  # of the interval, in which a pass is to be over: 150 s


class KeyStatus(StrEnum):
    """What is known of a credential."""

    UNKNOWN = "unknown"  # not checked, or no check said anything yet
    HEALTHY = "healthy"
    INVALID = "invalid"  # rejected by its provider
    DISABLED = "disabled"  # rejected several times in a row, and checked seldom

    @property
    def is_routed(self) -> bool:
        """Whether requests may be sent with it."""
        return self in {KeyStatus.UNKNOWN, KeyStatus.HEALTHY}


class CheckPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How keys are checked, by one worker for all.

    Attributes:
        enabled: whether they are, beside checks of keys that a provider has just refused.
        interval_s: from one pass over all keys to the next, give or take a fifth.
        spacing_ms: between two checks at one provider; less where the keys are many.
        concurrency: checks at the same time.
        disable_after: rejections in a row after which a key is checked only every 12th pass.
    """

    enabled: bool = True
    interval_s: float = 300.0
    spacing_ms: int = 1000
    concurrency: int = 8
    disable_after: int = 3


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What all workers know of one key.

    Attributes:
        rejections: in a row.
        checked_ms: when the last check was booked.
        since_ms: since when the status is what it is.
        said: what the last check said: `valid`, `rejected` or `unknown`.
        reason: of the last rejection, `-` for none.
    """

    status: KeyStatus = KeyStatus.UNKNOWN
    rejections: int = 0
    checked_ms: int = 0
    since_ms: int = 0
    said: str = "unknown"
    reason: str = "-"


def book_check(
    record: KeyRecord, said: str, reason: str, *, disable_after: int, took_ms: int, now_ms: int
) -> KeyRecord | None:
    """Tell what a check makes of a key; None when one that began later has said something.

    Args:
        record: what was known.
        said: `valid`, `rejected` or `unknown`.
        reason: of a rejection.
        disable_after: rejections in a row that disable.
        took_ms: from the beginning of the check until now.
        now_ms: the server's clock.
    """
    if now_ms - took_ms < record.checked_ms <= now_ms:
        return None
    status, rejections = record.status, record.rejections
    if said == "valid":
        status, rejections = KeyStatus.HEALTHY, 0
    elif said == "rejected":
        rejections += 1
        status = KeyStatus.DISABLED if rejections >= disable_after else KeyStatus.INVALID
    return KeyRecord(
        status=status,
        rejections=rejections,
        checked_ms=now_ms,
        since_ms=now_ms if status is not record.status else record.since_ms,
        said=said,
        reason=reason if said == "rejected" else record.reason if rejections else "-",
    )


def is_check_due(record: KeyRecord, policy: CheckPolicy, now_ms: int) -> bool:
    """Whether a pass that begins now checks a key."""
    interval_ms = policy.interval_s * MS_PER_S
    age_ms = now_ms - record.checked_ms
    if age_ms < 0:  # the clock stepped back
        return True
    if record.status is KeyStatus.DISABLED:
        return age_ms >= (DISABLED_INTERVALS - 1 + RECENT_RATIO) * interval_ms
    return not record.status.is_routed or age_ms >= RECENT_RATIO * interval_ms


def plan_checks(providers_of: dict[str, str], policy: CheckPolicy) -> list[tuple[int, str]]:
    """Spread the checks of a pass: at which ms after its beginning each key is checked.

    Providers take turns, and each has its keys apart by `spacing_ms`, or by less where the pass
    would take longer than half of the interval.

    Args:
        providers_of: the keys that are due, each with its provider.
        policy: of the operator.
    """
    by_provider: dict[str, list[str]] = {}
    for key, provider in providers_of.items():
        by_provider.setdefault(provider, []).append(key)
    within_ms = PASS_RATIO * policy.interval_s * MS_PER_S
    plan = []
    for keys in by_provider.values():
        apart_ms = min(policy.spacing_ms, within_ms / len(keys))
        plan += [(round(place * apart_ms), key) for place, key in enumerate(keys)]
    return sorted(plan, key=lambda check: check[0])  # stable: providers in the order of their keys
