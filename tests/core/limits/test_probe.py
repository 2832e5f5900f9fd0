"""When resting keys are checked: what is ripe, in which order, and how the pace slows down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.probe import (
    FORGET_MS,
    Pace,
    ProbePolicy,
    back_off,
    is_due,
    is_ripe,
    plan_pass,
)

T0 = 1_795_000_000_000
MINUTE_MS = 60_000
POLICY = ProbePolicy()


def ripe(source: str, served_ms: int, left_ms: int) -> bool:
    return is_ripe(source, set_at_ms=T0 - served_ms, until_ms=T0 + left_ms, now_ms=T0)


@pytest.mark.parametrize(
    ("served_ms", "left_ms", "is_so"),
    [
        (5 * MINUTE_MS, 5 * MINUTE_MS, True),
        (5 * MINUTE_MS - 1, 5 * MINUTE_MS, False),
        (9 * MINUTE_MS, MINUTE_MS + 1, True),
        (9 * MINUTE_MS, MINUTE_MS, False),
        (60_000, 30_000, False),
    ],
)
def test_half_served_with_more_than_a_minute_left_is_ripe(
    served_ms: int, left_ms: int, *, is_so: bool
) -> None:
    assert ripe("heuristic", served_ms, left_ms) is is_so


@pytest.mark.parametrize("source", ["authoritative", "credit", "tier", ""])
def test_what_others_decided_is_never_ripe(source: str) -> None:
    assert not ripe(source, 5 * MINUTE_MS, 5 * MINUTE_MS)


def test_key_seen_for_the_first_time_waits_for_a_moment_of_its_own() -> None:
    plan = plan_pass({}, {"a": 0.0, "b": 1.0}, POLICY, T0)

    assert plan.check == ("a",)
    assert plan.seen == {"a": Pace(due_ms=T0), "b": Pace(due_ms=T0 + 45_000)}


def test_no_more_than_three_keys_are_checked_the_longest_due_first() -> None:
    paces = {name: Pace(due_ms=T0 - ago) for name, ago in (("a", 1), ("b", 9), ("c", 5), ("d", 7))}

    plan = plan_pass(paces, dict.fromkeys(paces, 0.5), POLICY, T0)

    assert plan.check == ("b", "d", "c")
    assert plan.seen == {}


def test_nothing_is_checked_when_checks_are_off() -> None:
    plan = plan_pass({"a": Pace(due_ms=T0)}, {"a": 0.0}, ProbePolicy(enabled=False), T0)

    assert plan.check == ()


def test_checks_that_change_nothing_come_later_and_later() -> None:
    pace, waits_ms = Pace(due_ms=T0), []
    for _ in range(6):
        pace = back_off(pace, T0)
        waits_ms.append(pace.due_ms - T0)

    assert waits_ms == [minutes * MINUTE_MS for minutes in (2, 4, 8, 15, 15, 15)]


def test_pace_of_a_key_that_is_not_ripe_is_kept_a_while() -> None:
    paces = {"new": Pace(due_ms=T0 - FORGET_MS + 1), "old": Pace(due_ms=T0 - FORGET_MS)}

    assert plan_pass(paces, {}, POLICY, T0).forget == ("old",)


def test_check_planned_by_a_clock_ahead_is_due() -> None:
    assert is_due(Pace(due_ms=T0 + 10**9), T0)
    assert not is_due(Pace(due_ms=T0 + 1), T0)


@given(
    ripe=st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1)),
    dues=st.dictionaries(st.sampled_from("abcdef"), st.integers(T0 - 10**7, T0 + 10**7)),
    per_pass=st.integers(1, 4),
)
def test_only_ripe_keys_that_are_due_are_checked(
    ripe: dict[str, float], dues: dict[str, int], per_pass: int
) -> None:
    paces = {key: Pace(due_ms=due_ms) for key, due_ms in dues.items()}
    plan = plan_pass(paces, ripe, ProbePolicy(per_pass=per_pass), T0)
    known = {**paces, **plan.seen}

    assert len(plan.check) <= per_pass
    assert set(plan.check) <= set(ripe)
    assert all(is_due(known[key], T0) for key in plan.check)
    assert not set(plan.forget) & set(ripe)
