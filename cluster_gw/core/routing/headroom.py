"""How much of its limits a route has left, and what that does to its score.

Only an order: what is admitted Redis decides, by live counts.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from cluster_gw.core.limits.usage import WindowUse

AXES: Final = 5  # bounds of one window: rpm, rpd, tpm, tpd, concurrency
NO_LIMIT: Final = -1


class HeadroomPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How scarce quota lowers a score; ratios of what remains.

    Attributes:
        ramp_start: share of a limit below which the score falls, 0 to 1.
        floor: factor that is left when nothing remains, 0 to 1.
        minute_ramp_start: the same as `ramp_start` for limits of a minute alone: what is used of
            these comes back by itself within the minute; null is `ramp_start`.
    """

    ramp_start: float = 0.2
    floor: float = 0.1
    minute_ramp_start: float | None = None


class Left(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What remains of the scarcest limit of each kind, a share in 0..1; None without any limit."""

    minute: float | None = None
    day: float | None = None

    def scarcer(self) -> float | None:
        """What remains of the scarcer of both."""
        if self.minute is None or self.day is None:
            return self.day if self.minute is None else self.minute
        return min(self.minute, self.day)


ALL_LEFT: Final = Left()


def headroom_factor(remaining_ratio: float, policy: HeadroomPolicy) -> float:
    """Give the factor for what remains of a limit: 1 while enough does, then down to the floor."""
    return _ramp(remaining_ratio, policy.ramp_start, policy.floor)


def _ramp(remaining_ratio: float, start: float, floor: float) -> float:
    remaining = min(max(remaining_ratio, 0.0), 1.0)
    if remaining >= start:
        return 1.0
    return floor + (1.0 - floor) * (remaining / start)


def headroom_factor_of(left: Left, policy: HeadroomPolicy) -> float:
    """Give the factor for what remains to a key: that of its minutes or its days, the lower one."""
    start, floor = policy.ramp_start, policy.floor
    of_minute = start if policy.minute_ramp_start is None else policy.minute_ramp_start
    return min(
        1.0 if left.day is None else _ramp(left.day, start, floor),
        1.0 if left.minute is None else _ramp(left.minute, of_minute, floor),
    )


def left_of(use: Sequence[WindowUse], limits: Sequence[int]) -> Left:
    """Tell what remains of the limits of a key that are nearest to their end; leases do not count.

    Args:
        use: of its windows.
        limits: five bounds for each of them (requests and tokens of minute and day in the order
            rpm, rpd, tpm, tpd, then concurrency); -1 for none.

    """
    minute: float | None = None
    day: float | None = None
    for place, window in enumerate(use):
        rpm, rpd, tpm, tpd, _ = limits[place * AXES : (place + 1) * AXES]
        minute = _more_used(minute, window.requests_minute, rpm)
        minute = _more_used(minute, window.tokens_minute, tpm)
        day = _more_used(day, window.requests_day, rpd)
        day = _more_used(day, window.tokens_day, tpd)
    if minute is None and day is None:
        return ALL_LEFT
    return Left(
        minute=None if minute is None else 1.0 - min(minute, 1.0),
        day=None if day is None else 1.0 - min(day, 1.0),
    )


def _more_used(share: float | None, used: int, limit: int) -> float | None:
    """The larger of two shares that are used."""
    if limit == NO_LIMIT:
        return share
    other = used / limit if limit > 0 else 1.0
    return other if share is None else max(share, other)


def month_remaining(used_tokens: int, budget_tokens: int | None, keys: int) -> float | None:
    """Tell what remains of the month's tokens; None where no budget is known.

    Args:
        used_tokens: on all keys since the month began.
        budget_tokens: what one key is given.
        keys: that may serve the model.
    """
    if not budget_tokens:
        return None
    return min(max(1.0 - used_tokens / (budget_tokens * max(1, keys)), 0.0), 1.0)


def best_remaining(of_keys: Iterable[float | None]) -> float | None:
    """Tell what remains on the key that has most left: it is picked next. None is unlimited."""
    found = list(of_keys)
    if not found or any(remaining is None for remaining in found):
        return None
    return max(remaining for remaining in found if remaining is not None)


def least(*remaining: float | None) -> float:
    """What remains of the scarcer of several limits, never the product; 1 without any."""
    return min((one for one in remaining if one is not None), default=1.0)
