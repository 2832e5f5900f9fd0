"""Failures that are not booked until they come in a row.

A model that spends its whole output on hidden reasoning answers nothing, and that is the request's
fault: no rest, no penalty, no count for the breaker. From the third in a row it is booked like any
failure. The count lives with the health of the target; times are the server's, ms since the epoch.
"""

from typing import Final

import msgspec

from cluster_gw.units import HOUR_S, MS_PER_S

BOOKED_FROM: Final = 3
KEPT_MS: Final = HOUR_S * MS_PER_S


class Streak(msgspec.Struct, frozen=True, kw_only=True):
    """How many came in a row, and when the last one did; a success or a booked failure resets it.

    Attributes:
        count: at least 0.
        at_ms: of the last one; 0 for none.
    """

    count: int = 0
    at_ms: int = 0


NO_STREAK = Streak()


def extend(streak: Streak, now_ms: int) -> tuple[Streak, bool]:
    """The record after one more, and whether that one is booked; an hour's quiet ends a row."""
    before = streak.count if abs(now_ms - streak.at_ms) < KEPT_MS else 0
    count = min(before + 1, BOOKED_FROM)
    return Streak(count=count, at_ms=now_ms), count >= BOOKED_FROM
