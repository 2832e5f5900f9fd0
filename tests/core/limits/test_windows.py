from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.windows import (
    DAY_BUCKETS,
    DAY_WIDTH_MS,
    MINUTE_BUCKETS,
    MINUTE_WIDTH_MS,
    ROLLING,
    CalendarDay,
    Limits,
    calendar_day,
)

HOUR_MS = 3_600_000
ZONES = (
    *("UTC", "America/Los_Angeles", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"),
    *("America/Sao_Paulo", "Africa/Cairo", "Pacific/Apia", "Asia/Beirut", "America/Havana"),
)


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def length_hours(day: CalendarDay, zone: str) -> float:
    start = datetime(day.id // 10_000, day.id // 100 % 100, day.id % 100, tzinfo=ZoneInfo(zone))
    return (day.end_ms - start.timestamp() * 1000) / HOUR_MS


@pytest.mark.parametrize(
    ("zone", "now", "day_id", "end", "hours"),
    [
        ("UTC", "2026-11-29T23:59:59.999Z", 20261129, "2026-11-30T00:00:00Z", 24),
        ("UTC", "2026-11-30T00:00:00Z", 20261130, "2026-12-01T00:00:00Z", 24),
        ("America/Los_Angeles", "2026-11-30T07:59:59Z", 20261129, "2026-11-30T08:00:00Z", 24),
        ("America/Los_Angeles", "2026-03-08T12:00:00Z", 20260308, "2026-03-09T07:00:00Z", 23),
        ("America/Los_Angeles", "2026-11-01T08:30:00Z", 20261101, "2026-11-02T08:00:00Z", 25),
        ("America/Los_Angeles", "2026-11-01T09:30:00Z", 20261101, "2026-11-02T08:00:00Z", 25),
        ("Europe/Berlin", "2026-03-29T00:30:00Z", 20260329, "2026-03-29T22:00:00Z", 23),
        ("Europe/Berlin", "2026-10-25T00:30:00Z", 20261025, "2026-10-25T23:00:00Z", 25),
        ("Europe/Berlin", "2026-12-31T23:00:00Z", 20270101, "2027-01-01T23:00:00Z", 24),
        ("Asia/Kathmandu", "2028-02-29T00:00:00Z", 20280229, "2028-02-29T18:15:00Z", 24),
        ("Australia/Lord_Howe", "2026-04-05T00:00:00Z", 20260405, "2026-04-05T13:30:00Z", 24.5),
    ],
)
def test_day_has_the_length_its_zone_gives_it(
    zone: str, now: str, day_id: int, end: str, hours: float
) -> None:
    day = calendar_day(ms(now), zone)

    assert day == CalendarDay(id=day_id, end_ms=ms(end))
    assert length_hours(day, zone) == hours


def test_day_ends_where_the_next_begins_when_midnight_is_skipped() -> None:
    # Cairo moves its clocks at midnight: 24 April 2026 begins at 01:00.
    before = calendar_day(ms("2026-04-23T12:00:00Z"), "Africa/Cairo")

    assert calendar_day(before.end_ms - 1, "Africa/Cairo").id == 20260423
    assert calendar_day(before.end_ms, "Africa/Cairo").id == 20260424


@given(
    now_ms=st.integers(ms("2015-01-01T00:00:00Z"), ms("2037-01-01T00:00:00Z")),
    zone=st.sampled_from(ZONES),
)
def test_every_instant_lies_in_its_day_and_the_end_in_a_later_one(now_ms: int, zone: str) -> None:
    day = calendar_day(now_ms, zone)

    assert now_ms < day.end_ms <= now_ms + 26 * HOUR_MS
    assert calendar_day(day.end_ms - 1, zone) == day
    assert calendar_day(day.end_ms, zone).id > day.id


def test_rolling_day_has_neither_id_nor_end() -> None:
    assert calendar_day(ms("2026-11-29T00:00:00Z"), ROLLING) == CalendarDay(id=0, end_ms=0)


def test_unknown_zone_is_an_error() -> None:
    with pytest.raises(ZoneInfoNotFoundError):
        calendar_day(0, "Mars/Olympus")


def test_rings_cover_their_window_the_rounding_and_a_second_of_dispatch() -> None:
    assert MINUTE_BUCKETS * MINUTE_WIDTH_MS == 62_000
    assert timedelta(milliseconds=DAY_BUCKETS * DAY_WIDTH_MS) == timedelta(hours=25)


@pytest.mark.parametrize("name", ["rpm", "rpd", "tpm", "tpd", "concurrency"])
def test_any_bound_makes_limits_limited_even_zero(name: str) -> None:
    assert Limits().is_unlimited()
    assert not Limits(**{name: 0}).is_unlimited()


def test_end_of_day_is_told_in_utc_milliseconds() -> None:
    end_ms = calendar_day(ms("2026-11-29T12:00:00Z"), "UTC").end_ms

    assert datetime.fromtimestamp(end_ms / 1000, UTC).isoformat() == "2026-11-30T00:00:00+00:00"
