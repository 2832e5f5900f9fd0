from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.degraded import DegradedPolicy, PoolState, weigh_pool

NOW_MS = 1_796_000_000_000
POLICY = DegradedPolicy()
SECOND_MS = 1000
STEPS = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 6)), max_size=60)


def weighed(state: PoolState, at_s: float, usable: int, total: int = 6, **more: Any) -> PoolState:
    policy = DegradedPolicy(**more)
    now_ms = NOW_MS + round(at_s * SECOND_MS)
    return weigh_pool(state, usable=usable, total=total, policy=policy, now_ms=now_ms)


def walk(*steps: tuple[float, int]) -> PoolState:
    """The state after these numbers of usable providers out of six, at these seconds."""
    state = PoolState()
    for at_s, usable in steps:
        state = weighed(state, at_s, usable)
    return state


@pytest.mark.parametrize(
    ("steps", "is_degraded"),
    [
        ([(0, 2), (59.9, 2)], False),
        ([(0, 2), (60, 2)], True),
        ([(0, 3), (60, 3)], False),  # half is enough
        ([(0, 2), (30, 3), (60, 2), (119, 2)], False),
        ([(0, 2), (30, 3), (60, 2), (120, 2)], True),
        ([(0, 0), (60, 0), (61, 6), (180, 6)], True),
        ([(0, 0), (60, 0), (61, 6), (181, 6)], False),
        ([(0, 0), (60, 0), (61, 6), (100, 0), (130, 6), (249, 6)], True),
        ([(0, 0), (60, 0), (61, 6), (100, 0), (130, 6), (250, 6)], False),
    ],
)
def test_both_ways_take_their_time(steps: list[tuple[float, int]], is_degraded: bool) -> None:
    assert walk(*steps).is_degraded is is_degraded


def test_few_providers_are_never_degraded() -> None:
    degraded = walk((0, 0), (60, 0))

    assert weighed(degraded, 61, 0, total=2) == PoolState()
    assert weighed(weighed(PoolState(), 0, 0, total=2), 600, 0, total=2) == PoolState()


def test_clock_that_steps_back_starts_the_grace_anew() -> None:
    state = weighed(weighed(PoolState(), 0, 0), -100, 0)

    assert not weighed(state, -41, 0).is_degraded
    assert weighed(state, -40, 0).is_degraded


@given(steps=STEPS)
def test_state_does_not_flap(steps: list[tuple[int, int]]) -> None:
    """Whatever happens, it changes no oftener than the two graces allow."""
    state, at_s, changes = PoolState(), 0.0, []
    for step_s, usable in steps:
        at_s += step_s
        after = weighed(state, at_s, usable)
        if after.is_degraded != state.is_degraded:
            changes.append((at_s, after.is_degraded))
        state = after

    for (earlier_s, _), (later_s, is_degraded) in pairwise(changes):
        assert later_s - earlier_s >= (POLICY.entry_s if is_degraded else POLICY.exit_s)


@given(steps=STEPS)
def test_share_that_never_turns_for_long_enough_changes_nothing(
    steps: list[tuple[int, int]],
) -> None:
    state, at_s, low_since_s = PoolState(), 0.0, None
    for step_s, usable in steps:
        at_s += min(step_s, 20)
        low_since_s = None if usable >= 3 else at_s if low_since_s is None else low_since_s
        usable_now = 6 if low_since_s is not None and at_s - low_since_s >= 60 else usable
        low_since_s = None if usable_now >= 3 else low_since_s
        state = weighed(state, at_s, usable_now)

        assert not state.is_degraded
