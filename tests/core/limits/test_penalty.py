import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.penalty import (
    NO_PENALTY,
    Misdeed,
    Penalty,
    PenaltyPolicy,
    change,
    points_at,
    points_for,
)

T0 = 1_795_000_000_000
DECAY_MS = 120_000
POLICY = PenaltyPolicy()
CHANGES = st.lists(
    st.tuples(st.sampled_from([3.0, 1.0, -1.0]), st.integers(0, 600_000)), max_size=30
)


@pytest.mark.parametrize(
    ("misdeed", "sibling", "points"),
    [
        (Misdeed.RATE_LIMIT, False, 3.0),
        (Misdeed.FAILURE, False, 1.0),
        (Misdeed.RATE_LIMIT, True, 0.0),
        (Misdeed.FAILURE, True, 0.0),
        (None, False, -1.0),
        (None, True, -1.0),
    ],
)
def test_failures_cost_points_only_when_no_sibling_could_serve(
    *, misdeed: Misdeed | None, sibling: bool, points: float
) -> None:
    assert points_for(misdeed, POLICY, sibling_could_serve=sibling) == points


def test_trials_that_fail_cost_no_points_unless_they_say_too_many() -> None:
    for misdeed, points in ((Misdeed.FAILURE, 0.0), (Misdeed.RATE_LIMIT, 3.0)):
        assert points_for(misdeed, POLICY, sibling_could_serve=False, is_trial=True) == points


@pytest.mark.parametrize(
    ("after_ms", "points"),
    [(0, 3), (DECAY_MS - 1, 3), (DECAY_MS, 2), (2 * DECAY_MS, 1), (3 * DECAY_MS, 0), (10**9, 0)],
)
def test_a_point_goes_with_every_full_period(after_ms: int, points: float) -> None:
    penalty = change(NO_PENALTY, 3.0, POLICY, T0)

    assert points_at(penalty, POLICY, T0 + after_ms) == points


def test_points_stop_at_the_maximum() -> None:
    penalty = NO_PENALTY
    for _ in range(7):
        penalty = change(penalty, 3.0, POLICY, T0)

    assert penalty == Penalty(points=10.0, since_ms=T0, hits=7)


def test_record_ends_with_its_last_point() -> None:
    penalty = change(NO_PENALTY, 1.0, POLICY, T0)

    assert change(penalty, -1.0, POLICY, T0 + 1) == NO_PENALTY
    assert change(NO_PENALTY, -1.0, POLICY, T0) == NO_PENALTY


def test_hits_count_from_the_last_time_there_were_no_points() -> None:
    once = change(NO_PENALTY, 3.0, POLICY, T0)
    twice = change(once, 1.0, POLICY, T0 + 1)

    assert (once.hits, twice.hits) == (1, 2)
    assert change(twice, -1.0, POLICY, T0 + 2).hits == 2
    assert change(twice, 1.0, POLICY, T0 + 4 * DECAY_MS + 1).hits == 1


def test_success_does_not_delay_the_decay() -> None:
    penalty = change(change(NO_PENALTY, 10.0, POLICY, T0), -1.0, POLICY, T0 + 150_000)

    assert points_at(penalty, POLICY, T0 + 150_000) == 8.0
    assert points_at(penalty, POLICY, T0 + 2 * DECAY_MS) == 7.0


def test_failure_starts_the_period_anew() -> None:
    penalty = change(change(NO_PENALTY, 3.0, POLICY, T0), 1.0, POLICY, T0 + DECAY_MS - 1)

    assert points_at(penalty, POLICY, T0 + DECAY_MS) == 4.0


def test_clock_set_back_neither_adds_nor_takes_points() -> None:
    penalty = change(NO_PENALTY, 3.0, POLICY, T0)

    assert points_at(penalty, POLICY, T0 - 10**9) == 3.0
    assert change(penalty, -1.0, POLICY, T0 - 500) == Penalty(points=2.0, since_ms=T0 - 500, hits=1)


@given(changes=CHANGES)
def test_points_stay_in_bounds_and_only_fall_with_time(changes: list[tuple[float, int]]) -> None:
    penalty, now_ms = NO_PENALTY, T0
    for points, gap_ms in changes:
        before = points_at(penalty, POLICY, now_ms)
        assert points_at(penalty, POLICY, now_ms + gap_ms) <= before

        now_ms += gap_ms
        decayed = points_at(penalty, POLICY, now_ms)
        penalty = change(penalty, points, POLICY, now_ms)
        assert points_at(penalty, POLICY, now_ms) == min(max(0.0, decayed + points), 10.0)


@given(points=st.floats(0.1, 10), splits=st.lists(st.integers(1, 400_000), max_size=6))
def test_looking_often_decays_no_faster_than_looking_once(points: float, splits: list[int]) -> None:
    penalty = change(NO_PENALTY, points, POLICY, T0)
    stepwise, now_ms = penalty, T0
    for gap_ms in splits:
        now_ms += gap_ms
        stepwise = change(stepwise, 0.0, POLICY, now_ms)

    once = points_at(penalty, POLICY, now_ms)
    assert points_at(stepwise, POLICY, now_ms) == pytest.approx(once)
