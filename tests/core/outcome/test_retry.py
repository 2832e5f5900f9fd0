"""How many attempts a request may make, and for how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.outcome.retry import AttemptPlanner, AttemptPolicy, StopReason


def planner(**policy: int) -> AttemptPlanner:
    return AttemptPlanner(AttemptPolicy(**policy), started_ms=1000)


@pytest.mark.parametrize(
    ("index", "now_ms", "reason"),
    [
        (0, 10**9, None),
        (1, 10**9, None),
        (2, 1099, None),
        (2, 1100, StopReason.TIME_BUDGET),
        (4, 1000, None),
        (5, 1000, StopReason.ATTEMPTS),
    ],
)
def test_the_budget_binds_from_the_third_attempt(
    index: int, now_ms: int, reason: StopReason | None
) -> None:
    plan = planner(max=5, time_budget_ms=100)

    assert plan.stop_reason(index, now_ms) is reason
    assert plan.may_start(index, now_ms) is (reason is None)


def test_a_budget_of_zero_is_off() -> None:
    plan = planner(time_budget_ms=0)

    assert plan.may_start(19, 10**9)
    assert plan.hedge_remaining_ms(5, 10**9) is None


@pytest.mark.parametrize(
    ("index", "now_ms", "expected"),
    [
        (0, 1000, None),
        (1, 1000, None),
        (2, 1040, 60),
        (2, 1100, 0),
        (3, 9999, 0),
    ],
)
def test_the_hedge_timer_holds_what_is_left(index: int, now_ms: int, expected: int | None) -> None:
    assert planner(time_budget_ms=100).hedge_remaining_ms(index, now_ms) == expected


def test_failures_of_the_upstream_in_a_row_stop_the_request() -> None:
    plan = planner(max_consecutive_fails=2)

    plan.record(blames_upstream=True)
    plan.record(blames_upstream=False)
    assert plan.may_start(2, 1000)
    plan.record(blames_upstream=True)

    assert plan.stop_reason(3, 1000) is StopReason.CONSECUTIVE_FAILS


def test_an_attempt_is_last_when_nothing_would_follow_it() -> None:
    assert not planner().would_start_another(0, 0, 1000)
    assert planner().would_start_another(0, 1, 1000)
    assert not planner(max=1).would_start_another(0, 5, 1000)
    assert not planner(time_budget_ms=100).would_start_another(1, 5, 1100)
    assert not planner(max_consecutive_fails=1).would_start_another(0, 5, 1000)


@given(
    st.integers(1, 8),
    st.integers(0, 200),
    st.integers(0, 3),
    st.integers(0, 9),
    st.integers(0, 300),
)
def test_another_attempt_is_promised_only_if_it_may_start(
    most: int, budget_ms: int, fails: int, index: int, spent_ms: int
) -> None:
    plan = planner(max=most, time_budget_ms=budget_ms, max_consecutive_fails=fails)
    promised = plan.would_start_another(index, 1, 1000 + spent_ms)

    plan.record(blames_upstream=True)

    assert promised == plan.may_start(index + 1, 1000 + spent_ms)
