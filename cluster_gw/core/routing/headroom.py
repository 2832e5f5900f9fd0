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
    """

    ramp_start: float = 0.2
    floor: float = 0.1


def headroom_factor(remaining_ratio: float, policy: HeadroomPolicy) -> float:
    """Give the factor for what remains of a limit: 1 while enough does, then down to the floor."""
    remaining = min(max(remaining_ratio, 0.0), 1.0)
    if remaining >= policy.ramp_start:
        return 1.0
    return policy.floor + (1.0 - policy.floor) * (remaining / policy.ramp_start)


def window_remaining(use: Sequence[WindowUse], limits: Sequence[int]) -> float | None:
    """Tell what remains of the limit of a key that is nearest to its end; leases do not count.

    Args:
        use: of its windows.
        limits: five bounds for each of them (requests and tokens of minute and day in the order
            rpm, rpd, tpm, tpd, then concurrency); -1 for none.

    Returns:
        Share of that limit in 0..1; None without any limit.
    """
    worst: float | None = None
    for place, window in enumerate(use):
        rpm, rpd, tpm, tpd, _ = limits[place * AXES : (place + 1) * AXES]
        for used, limit in (
            (window.requests_minute, rpm),
            (window.requests_day, rpd),
            (window.tokens_minute, tpm),
            (window.tokens_day, tpd),
        ):
            if limit != NO_LIMIT:
                share = used / limit if limit > 0 else 1.0
                worst = share if worst is None else max(worst, share)
    return None if worst is None else 1.0 - min(worst, 1.0)


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
