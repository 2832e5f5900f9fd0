"""What the field `now` of a window says of its use at some later instant."""

from typing import Final

from cluster_gw.core.limits.usage import UNUSED, WindowUse, use_at

NOW_MS: Final = 1_795_000_000_000
SECOND: Final = NOW_MS // 1000
HOUR: Final = NOW_MS // 3_600_000
ROLLING: Final = (SECOND, 1, 50, 7, 900, HOUR, (HOUR + 1) * 3_600_000, 40, 8000, 3, 10**13 - 1)
CALENDAR: Final = (SECOND, 1, 50, 7, 900, 20261115, NOW_MS + 60_000, 40, 8000, 3, 10**13 - 1)


def test_present_counts_are_told_as_they_are() -> None:
    assert use_at(ROLLING, NOW_MS) == WindowUse(7, 900, 40, 8000, 3)


def test_a_minute_counts_until_its_last_bucket_has_left() -> None:
    assert use_at(ROLLING, NOW_MS + 61_000).requests_minute == 7
    assert use_at(ROLLING, NOW_MS + 62_000) == WindowUse(0, 0, 40, 8000, 3)


def test_a_rolling_day_counts_until_its_last_hour_has_left() -> None:
    assert use_at(ROLLING, (HOUR + 24) * 3_600_000).requests_day == 40
    assert use_at(ROLLING, (HOUR + 25) * 3_600_000).requests_day == 0


def test_a_calendar_day_ends_at_its_end() -> None:
    assert use_at(CALENDAR, NOW_MS + 59_999).day_ends_ms == NOW_MS + 60_000
    assert use_at(CALENDAR, NOW_MS + 60_000) == WindowUse(7, 900, 0, 0, 3)


def test_a_clock_that_was_set_back_forgets_nothing() -> None:
    assert use_at(ROLLING, NOW_MS - 10**8) == use_at(ROLLING, NOW_MS)


def test_further_numbers_are_not_looked_at() -> None:
    assert use_at((*ROLLING, 5, 6), NOW_MS) == use_at(ROLLING, NOW_MS)
    assert WindowUse() == UNUSED
