"""What is left of limits, and the ramp by which it lowers a score."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.usage import WindowUse
from cluster_gw.core.routing.headroom import (
    HeadroomPolicy,
    Left,
    best_remaining,
    headroom_factor,
    headroom_factor_of,
    least,
    left_of,
    month_remaining,
)

NONE = (-1, -1, -1, -1, -1)


@pytest.mark.parametrize(
    ("remaining", "factor"),
    [(1.0, 1.0), (0.2, 1.0), (0.1, 0.55), (0.0, 0.1), (-1.0, 0.1), (2.0, 1.0)],
)
def test_the_factor_falls_from_ramp_start_to_the_floor(remaining: float, factor: float) -> None:
    assert headroom_factor(remaining, HeadroomPolicy()) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("policy", "remaining", "factor"),
    [
        (HeadroomPolicy(ramp_start=0.5, floor=0.0), 0.25, 0.5),
        (HeadroomPolicy(ramp_start=0.0), 0.0, 1.0),
        (HeadroomPolicy(ramp_start=1.0, floor=1.0), 0.3, 1.0),
    ],
)
def test_start_and_floor_of_the_ramp_are_the_operators(
    policy: HeadroomPolicy, remaining: float, factor: float
) -> None:
    assert headroom_factor(remaining, policy) == pytest.approx(factor)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_less_headroom_never_scores_higher(a: float, b: float, start: float, floor: float) -> None:
    policy = HeadroomPolicy(ramp_start=start, floor=floor)
    low, high = sorted((a, b))

    assert headroom_factor(low, policy) <= headroom_factor(high, policy) + 1e-12


@pytest.mark.parametrize(
    ("limits", "remaining"),
    [
        (NONE, None),
        ((10, -1, -1, -1, 1), 0.5),
        ((10, 10, -1, -1, -1), 0.4),
        ((10, 10, 1000, -1, -1), 0.3),
        ((10, 10, 1000, 1000, -1), 0.2),
        ((4, -1, -1, -1, -1), 0.0),
        ((0, -1, -1, -1, -1), 0.0),
    ],
)
def test_of_the_limits_of_a_key_the_scarcest_counts_and_leases_do_not(
    limits: tuple[int, ...], remaining: float | None
) -> None:
    use = WindowUse(
        requests_minute=5, requests_day=6, tokens_minute=700, tokens_day=800, in_flight=9
    )

    assert left_of([use], limits).scarcer() == (
        None if remaining is None else pytest.approx(remaining)
    )


def test_every_window_of_a_key_counts() -> None:
    model, whole = WindowUse(requests_minute=1), WindowUse(requests_minute=9)

    left = left_of([model, whole], (10, -1, -1, -1, -1, 10, -1, -1, -1, -1))

    assert left.scarcer() == left.minute == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("used", "budget", "keys", "remaining"),
    [
        (0, 1000, 1, 1.0),
        (500, 1000, 2, 0.75),
        (500, 1000, 0, 0.5),
        (9999, 1000, 1, 0.0),
        (5, None, 3, None),
        (5, 0, 3, None),
    ],
)
def test_a_months_budget_counts_for_each_key_and_an_unknown_one_has_no_opinion(
    used: int, budget: int | None, keys: int, remaining: float | None
) -> None:
    assert month_remaining(used, budget, keys) == remaining


def test_the_key_with_most_left_counts_and_one_without_limits_has_all() -> None:
    assert best_remaining([0.1, 0.7]) == 0.7
    assert best_remaining([0.1, None]) is None
    assert best_remaining([]) is None


def test_of_month_and_windows_the_scarcer_counts() -> None:
    assert least(0.5, 0.3) == 0.3
    assert least(None, 0.3) == 0.3
    assert least(None, None) == 1.0


def test_minutes_and_days_are_told_apart() -> None:
    use = WindowUse(requests_minute=5, requests_day=6, tokens_minute=700, tokens_day=800)

    left = left_of([use], (10, 20, 1000, 10_000, -1))

    assert left.minute == pytest.approx(0.3)
    assert left.day == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("left", "factor"),
    [
        (Left(minute=0.0, day=1.0), 1.0),
        (Left(minute=0.0, day=0.1), 0.55),
        (Left(minute=0.0), 1.0),
        (Left(day=0.0), 0.1),
        (Left(), 1.0),
    ],
)
def test_limits_of_a_minute_have_a_ramp_of_their_own_where_it_is_set(
    left: Left, factor: float
) -> None:
    policy = HeadroomPolicy(minute_ramp_start=0.0)

    assert headroom_factor_of(left, policy) == pytest.approx(factor)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_without_it_the_scarcer_of_both_goes_down_the_one_ramp(
    minute: float, day: float, start: float, floor: float
) -> None:
    policy = HeadroomPolicy(ramp_start=start, floor=floor)

    assert headroom_factor_of(Left(minute=minute, day=day), policy) == headroom_factor(
        min(minute, day), policy
    )
