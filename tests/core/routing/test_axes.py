"""Speed and intelligence: each formula, with figures worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.routing.axes import (
    first_byte_score,
    intelligence_composite,
    lower_median,
    speed_score,
    throughput_score,
)
from cluster_gw.core.routing.statistics import (
    NO_STATISTICS,
    Result,
    Sample,
    Statistics,
    of_sample,
)


@pytest.mark.parametrize(
    ("tokens_per_s", "score"), [(0.0, 0.0), (60.0, 1 - 1 / math.e), (600.0, 0.9999546)]
)
def test_throughput_saturates(tokens_per_s: float, score: float) -> None:
    assert throughput_score(tokens_per_s) == pytest.approx(score)


@pytest.mark.parametrize(
    ("first_byte_ms", "score"),
    [(0.0, 1.0), (300.0, 1.0), (2650.0, 0.5), (5000.0, 0.0), (90_000.0, 0.0)],
)
def test_first_byte_falls_from_300_ms_to_5_s(first_byte_ms: float, score: float) -> None:
    assert first_byte_score(first_byte_ms) == pytest.approx(score)


def test_speed_is_six_parts_throughput_and_four_parts_first_byte() -> None:
    both = Statistics(
        successes=2.0,
        output_tokens=120.0,
        latency_ms=2000.0,
        first_byte_ms=5300.0,
        first_bytes=2.0,
    )

    assert speed_score(both) == pytest.approx(0.6 * (1 - 1 / math.e) + 0.4 * 0.5)


@pytest.mark.parametrize(("share", "speed"), [(0.0, 1 - 1 / math.e), (1.0, 0.5)])
def test_how_much_the_first_byte_counts_is_the_operators(share: float, speed: float) -> None:
    both = Statistics(
        output_tokens=600.0, latency_ms=10_000.0, first_byte_ms=2650.0, first_bytes=1.0
    )

    assert speed_score(both, share) == pytest.approx(speed)


def test_of_speed_what_is_not_known_does_not_count() -> None:
    only_throughput = Statistics(successes=1.0, output_tokens=60.0, latency_ms=1000.0)
    only_first_byte = Statistics(successes=1.0, first_byte_ms=2650.0, first_bytes=1.0)

    assert speed_score(only_throughput) == pytest.approx(1 - 1 / math.e)
    assert speed_score(only_first_byte) == pytest.approx(0.5)
    assert speed_score(NO_STATISTICS) == 0.6


def test_a_timeout_is_as_slow_as_can_be() -> None:
    assert speed_score(of_sample(Sample(result=Result.TIMEOUT, latency_ms=60_000))) == 0.0


def test_a_failure_that_is_no_timeout_says_nothing_of_speed() -> None:
    assert speed_score(of_sample(Sample(result=Result.FAILURE, latency_ms=60_000))) == 0.6


def test_intelligence_puts_tier_before_rank() -> None:
    assert intelligence_composite("Frontier", 1) == 4000.0 - 31.0
    assert intelligence_composite("Small", 4) == 1000.0 - 62.0
    assert intelligence_composite("other", 0) == -31.0


@given(tier=st.integers(1, 3), better=st.integers(1, 1000), worse=st.integers(1, 1000))
def test_the_last_of_a_tier_beats_the_first_of_the_next(tier: int, better: int, worse: int) -> None:
    names = ("other", "Small", "Medium", "Large", "Frontier")

    assert intelligence_composite(names[tier + 1], worse) > intelligence_composite(
        names[tier], better
    )


@pytest.mark.parametrize(
    ("values", "middle"), [([], None), ([7], 7), ([4, 1], 1), ([3, 1, 2], 2), ([4, 3, 2, 1], 2)]
)
def test_the_lower_median_is_the_lower_of_two_in_the_middle(
    values: list[int], middle: int | None
) -> None:
    assert lower_median(values) == middle
