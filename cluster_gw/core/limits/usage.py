"""How much of a window is used: what a look at its hash in Redis says, worked out for an instant.

A look tells the field `now` of a window, less what has left the minute or the rolling day since the
last admission: a window that is nearly full is asked for less, and would look full for a minute.
"""

from typing import Final

import msgspec

from cluster_gw.core.limits.windows import (
    DAY_BUCKETS,
    DAY_WIDTH_MS,
    MINUTE_BUCKETS,
    MINUTE_WIDTH_MS,
)

CALENDAR_MIN: Final = 10_000_000  # as in lua/lib/window.lua: below it a period is an hour


class WindowUse(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one window counts; the default is one that was never used.

    Attributes:
        requests_minute: admitted within the last minute, at most.
        tokens_minute: the same in tokens.
        requests_day: admitted within the present day (rolling or calendar), at most.
        tokens_day: the same in tokens.
        in_flight: leases that hold a slot.
        day_ends_ms: end of the calendar day, ms since the epoch; 0 for a rolling one.
    """

    requests_minute: int = 0
    tokens_minute: int = 0
    requests_day: int = 0
    tokens_day: int = 0
    in_flight: int = 0
    day_ends_ms: int = 0


UNUSED: Final = WindowUse()


def use_at(numbers: tuple[int, ...], now_ms: int) -> WindowUse:
    """Tell the use of a window at `now_ms`.

    Args:
        numbers: of its field `now`, in order: second, its requests and tokens, those of the minute,
            period, its end in ms, requests and tokens of the day, leases in flight, and more.
        now_ms: the server's clock, ms since the epoch.
    """
    second, _, _, requests_minute, tokens_minute = numbers[:5]
    period, ends_ms, requests_day, tokens_day, in_flight = numbers[5:10]
    if now_ms // MINUTE_WIDTH_MS - second >= MINUTE_BUCKETS:
        requests_minute = tokens_minute = 0
    is_calendar = period >= CALENDAR_MIN
    is_over = now_ms >= ends_ms if is_calendar else now_ms // DAY_WIDTH_MS - period >= DAY_BUCKETS
    if is_over:
        requests_day = tokens_day = 0
    return WindowUse(
        requests_minute,
        tokens_minute,
        requests_day,
        tokens_day,
        in_flight,
        ends_ms if is_calendar and not is_over else 0,
    )
