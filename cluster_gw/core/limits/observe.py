"""What a provider's own count of a limit changes in ours.

Ours is exact for what went through this gateway and knows nothing of others who use the same key.
Where the provider has less left than we think, our count is raised until it agrees, in a bucket
that leaves our window when the provider says its count starts anew. It is never lowered: live
leases and everything of our own always count, so that a provider which lies or lags cannot loosen
a limit.

A worker turns an answer's reading into a `Hint` (what is believed, in lengths of time); the script
applies it to the window by `raised_by`. Times are the server's, ms since the epoch.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.canonical.quota import Observation, QuotaWindow
from cluster_gw.units import DAY_S, HOUR_S, MINUTE_S, MS_PER_S

LONGEST_MS: Final[Mapping[QuotaWindow, int]] = MappingProxyType(
    {QuotaWindow.MINUTE: MINUTE_S * MS_PER_S, QuotaWindow.DAY: DAY_S * MS_PER_S}
)
UNSTATED_MS: Final[Mapping[QuotaWindow, int]] = MappingProxyType(
    {QuotaWindow.MINUTE: MINUTE_S * MS_PER_S, QuotaWindow.DAY: HOUR_S * MS_PER_S}
)  # without a reset; a day's ends sooner than it might, and the next answer renews it
OLDEST_MS: Final = MINUTE_S * MS_PER_S  # beyond the ring of seconds nobody knows what came after
DISPATCH_MS: Final = MS_PER_S  # an admission reaches the provider within this, or is taken anew
NOTICED_MIN: Final = 2
NOTICED_RATIO: Final = 0.05  # below this it is rounding, or an answer that overtook another


class Hint(msgspec.Struct, frozen=True, kw_only=True):
    """A reading as the script takes it.

    Attributes:
        remaining: what the provider had left when it answered, at least 0.
        limit: the provider's limit; None when not stated.
        age_ms: how long ago the head of that answer came, at least 0.
        hold_ms: how long from now the reading holds, above 0.
    """

    remaining: int
    limit: int | None
    age_ms: int
    hold_ms: int


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """Our own count of the same window.

    Attributes:
        limit: configured; None for no limit.
        used: now, settled and reserved.
        since: the part of `used` that was reserved at or after `counts_from(hint, now_ms)`, so that
            the provider may not have counted it yet.
    """

    limit: int | None
    used: int
    since: int


class Noticed(msgspec.Struct, frozen=True, kw_only=True):
    """What a reading says beyond our own count.

    Attributes:
        outside: use of the limit by others, in requests or tokens; 0 when it is too little to tell.
        is_limit_lower: the provider's limit is below the configured one.
    """

    outside: int = 0
    is_limit_lower: bool = False


def hint_of(observation: Observation, age_ms: int) -> Hint | None:
    """Tell what is believed of a reading; None when it says nothing about the present.

    Args:
        observation: from the answer's headers.
        age_ms: time since they came, at least 0.
    """
    if observation.remaining is None or age_ms > OLDEST_MS:
        return None
    window = observation.window
    reset_ms = UNSTATED_MS[window] if observation.reset_ms is None else observation.reset_ms
    hold_ms = min(reset_ms, LONGEST_MS[window]) - age_ms
    if hold_ms <= 0:
        return None
    return Hint(
        remaining=observation.remaining, limit=observation.limit, age_ms=age_ms, hold_ms=hold_ms
    )


def counts_from(hint: Hint, now_ms: int) -> int:
    """From when on a reservation may be missing in the provider's count."""
    return now_ms - hint.age_ms - DISPATCH_MS


def raised_by(hint: Hint, count: Count) -> int:
    """By how much our count is raised, at least 0.

    Nothing while we let through no more than the provider has left. Otherwise others used the key,
    and what the provider may not have counted yet is taken off as well.
    """
    if count.limit is None or count.limit - count.used <= hint.remaining:
        return 0
    return count.limit - count.used - max(0, hint.remaining - count.since)


def notice(hint: Hint, count: Count) -> Noticed:
    """Tell what a reading says about others; `count` is as it was before it was raised."""
    if count.limit is None:
        return Noticed()
    common = count.limit if hint.limit is None else min(count.limit, hint.limit)
    outside = common - count.used - hint.remaining
    is_noticed = outside >= max(NOTICED_MIN, math.ceil(common * NOTICED_RATIO))
    return Noticed(outside=outside if is_noticed else 0, is_limit_lower=common < count.limit)
