"""What a provider's own count of a limit changes in ours.

Ours is exact for what went through this gateway and knows nothing of others who use the same key.
Where the provider has less left than we think, a `Clamp` beside our window lets through no more
than that until the stated reset. It only tightens: our own count, live leases included, always
holds as well, so a provider that lies or lags cannot loosen a limit.

A worker turns an answer's reading into a `Hint` (what is believed, in lengths of time); the script
applies it to the window by `settle_hint`, and keeps the clamp by the other functions. Times are the
server's, ms since the epoch.
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


class Clamp(msgspec.Struct, frozen=True, kw_only=True):
    """A bound beside a window.

    Attributes:
        left: how much may still be reserved, at least 0.
        until_ms: when it ends.
        seen_at_ms: when the provider said so.
    """

    left: int
    until_ms: int
    seen_at_ms: int


class Noticed(msgspec.Struct, frozen=True, kw_only=True):
    """What the script answers.

    Attributes:
        clamp: what is stored from now on; None deletes it.
        outside: use of the limit by others, in requests or tokens; 0 when it is too little to tell.
        is_limit_lower: the provider's limit is below the configured one.
    """

    clamp: Clamp | None
    outside: int = 0
    is_limit_lower: bool = False


def hint_of(observation: Observation, age_ms: int) -> Hint | None:
    """Tell what is believed of a reading; None when it says nothing about the present.

    Args:
        observation: from the answer's headers.
        age_ms: time since they came, at least 0.
    """
    if observation.remaining is None:
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


def settle_hint(stored: Clamp | None, hint: Hint, count: Count, now_ms: int) -> Noticed:
    """The clamp after a reading; of two readings the one the provider made later holds."""
    stored = stored if stored is not None and now_ms < stored.until_ms else None
    seen_at_ms = now_ms - hint.age_ms
    if stored is not None and seen_at_ms < stored.seen_at_ms <= now_ms:
        return Noticed(clamp=stored)
    left = max(0, hint.remaining - count.since)
    clamp = Clamp(left=left, until_ms=now_ms + hint.hold_ms, seen_at_ms=seen_at_ms)
    if count.limit is None:
        return Noticed(clamp=clamp)
    common = count.limit if hint.limit is None else min(count.limit, hint.limit)
    outside = max(0, common - count.used - left)
    is_noticed = outside >= max(NOTICED_MIN, math.ceil(common * NOTICED_RATIO))
    return Noticed(
        clamp=clamp if left < count.limit - count.used else None,
        outside=outside if is_noticed else 0,
        is_limit_lower=common < count.limit,
    )


def wait_ms(clamp: Clamp | None, need: int, now_ms: int) -> int:
    """How long the clamp refuses `need`; 0 when it lets it through."""
    if clamp is None or need <= clamp.left:
        return 0
    return max(0, clamp.until_ms - now_ms)


def reserve(clamp: Clamp, need: int) -> Clamp:
    """The clamp after an admission."""
    return msgspec.structs.replace(clamp, left=max(0, clamp.left - need))


def correct(clamp: Clamp, *, estimate: int, actual: int, reserved_at_ms: int) -> Clamp:
    """The clamp after a settlement; a lease the provider had counted by then changes nothing."""
    if reserved_at_ms < clamp.seen_at_ms - DISPATCH_MS:
        return clamp
    return msgspec.structs.replace(clamp, left=max(0, clamp.left + estimate - actual))
