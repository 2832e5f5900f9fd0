"""Sums in buckets against the exact sum over all events of the last seven days."""

from collections.abc import Iterable
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.core.routing.statistics import (
    BUCKET_MS,
    BUCKETS,
    HALF_LIFE_MS,
    LATENCY_MAX_MS,
    NO_STATISTICS,
    Result,
    Sample,
    Statistics,
    add,
    bucket_of,
    of_sample,
    roll,
    statistics_at,
    values_of,
    weight,
)

NOW_MS: Final = 1_795_000_000_000
WEEK_MS: Final = BUCKETS * BUCKET_MS
EVEN: Final = 12  # events of a bucket, spread evenly
LONGEST: Final = 31  # buckets of a history


def summed(events: Iterable[tuple[int, Sample]], now_ms: int) -> Statistics:
    """What the record says of events at their times."""
    buckets: dict[int, Statistics] = {}
    for at_ms, sample in events:
        bucket = bucket_of(at_ms)
        grown = weight(at_ms, bucket * BUCKET_MS)
        buckets[bucket] = add(buckets.get(bucket, NO_STATISTICS), of_sample(sample), grown)
    return statistics_at(roll(buckets, bucket_of(now_ms)), now_ms)


def exact(events: Iterable[tuple[int, Sample]], now_ms: int) -> Statistics:
    """The same by its definition."""
    total = NO_STATISTICS
    for at_ms, sample in events:
        if now_ms - at_ms < WEEK_MS:
            total = add(total, of_sample(sample), weight(at_ms, now_ms))
    return total


def even(rates: list[int], now_ms: int) -> list[tuple[int, Sample]]:
    """Events spread evenly over each bucket, `rates` of them by bucket, the newest first."""
    last = bucket_of(now_ms)
    return [
        (at_ms, Sample(result=Result.SUCCESS, output_tokens=rate, latency_ms=1000))
        for ago, rate in enumerate(rates)
        for n in range(EVEN)
        if (at_ms := (last - ago) * BUCKET_MS + BUCKET_MS * (2 * n + 1) // (2 * EVEN)) <= now_ms
    ]


SAMPLES: Final = st.builds(
    Sample,
    result=st.sampled_from(Result),
    output_tokens=st.integers(0, 5000),
    latency_ms=st.integers(0, 200_000),
    first_byte_ms=st.none() | st.integers(0, 20_000),
)


@settings(deadline=None)  # thousands of weights take their time on a busy machine
@given(
    rates=st.lists(st.integers(1, 1000), min_size=LONGEST, max_size=LONGEST),
    offset_ms=st.integers(0, BUCKET_MS - 1),
)
def test_sums_are_within_1_2_percent_of_the_exact_seven_days(
    rates: list[int], offset_ms: int
) -> None:
    events = even(rates, NOW_MS + offset_ms)

    told, true = (f(events, NOW_MS + offset_ms) for f in (summed, exact))

    for one, other in zip(values_of(told), values_of(true), strict=True):
        assert one == pytest.approx(other, rel=0.012)


@settings(deadline=None)
@given(
    events=st.lists(st.tuples(st.integers(0, LONGEST * BUCKET_MS), SAMPLES), max_size=40),
    offset_ms=st.integers(0, BUCKET_MS - 1),
)
def test_whatever_happened_only_the_oldest_bucket_can_be_told_wrong(
    events: list[tuple[int, Sample]], offset_ms: int
) -> None:
    now_ms = NOW_MS + offset_ms
    dated = [(now_ms - ago_ms, sample) for ago_ms, sample in events]
    edge = bucket_of(now_ms) - BUCKETS

    told, true = (values_of(f(dated, now_ms)) for f in (summed, exact))

    at_edge = [one for one in dated if bucket_of(one[0]) == edge]
    most = values_of(exact([(max(at, now_ms - WEEK_MS + 1), s) for at, s in at_edge], now_ms))
    for one, other, band in zip(told, true, most, strict=True):
        assert abs(one - other) <= band * 1.1 + 1e-6 * max(1.0, other)


@given(at_ms=st.integers(0, 2**42), later_ms=st.integers(0, 4 * HALF_LIFE_MS))
def test_an_event_counts_half_after_two_days(at_ms: int, later_ms: int) -> None:
    now = weight(at_ms, at_ms + later_ms)

    assert weight(at_ms, at_ms + later_ms + HALF_LIFE_MS) == pytest.approx(now / 2)


def test_an_answer_tells_of_reliability_and_speed() -> None:
    told = of_sample(
        Sample(result=Result.SUCCESS, output_tokens=200, latency_ms=4000, first_byte_ms=300)
    )

    assert (told.alpha, told.beta, told.speed_samples) == (2.0, 1.0, 1.0)
    assert (told.tokens_per_s, told.mean_first_byte_ms) == (50.0, 300.0)


def test_a_failure_says_nothing_of_speed() -> None:
    told = of_sample(Sample(result=Result.FAILURE, output_tokens=9, latency_ms=50))

    assert (told.alpha, told.beta, told.speed_samples) == (1.0, 2.0, 0.0)
    assert told.tokens_per_s is None
    assert told.mean_first_byte_ms is None


def test_a_timeout_counts_as_slow_without_output_but_never_as_slower_than_two_minutes() -> None:
    told = of_sample(Sample(result=Result.TIMEOUT, output_tokens=9, latency_ms=10**9))

    assert (told.failures, told.speed_samples, told.tokens_per_s) == (1.0, 1.0, 0.0)
    assert told.mean_first_byte_ms == LATENCY_MAX_MS


def test_an_answer_that_was_not_streamed_has_no_time_to_first_byte() -> None:
    told = of_sample(Sample(result=Result.SUCCESS, output_tokens=10, latency_ms=100))

    assert told.mean_first_byte_ms is None
    assert told.tokens_per_s == 100.0


def test_nothing_is_left_after_seven_days_and_a_bucket() -> None:
    events = [(NOW_MS, Sample(result=Result.SUCCESS))]

    assert summed(events, NOW_MS + WEEK_MS + BUCKET_MS) == NO_STATISTICS
