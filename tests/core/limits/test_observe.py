import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.quota import Observation, QuotaKind, QuotaWindow
from cluster_gw.core.limits.observe import (
    Clamp,
    Count,
    Hint,
    Noticed,
    correct,
    counts_from,
    hint_of,
    reserve,
    settle_hint,
    wait_ms,
)

T0 = 1_795_000_000_000


def reading(
    remaining: int | None = 20,
    reset_ms: int | None = 30_000,
    window: QuotaWindow = QuotaWindow.MINUTE,
) -> Observation:
    return Observation(
        window=window, kind=QuotaKind.REQUESTS, limit=60, remaining=remaining, reset_ms=reset_ms
    )


def hint(remaining: int, *, limit: int | None = 60, age_ms: int = 0) -> Hint:
    return Hint(remaining=remaining, limit=limit, age_ms=age_ms, hold_ms=30_000)


def clamp(left: int, *, seen_at_ms: int = T0, until_ms: int = T0 + 30_000) -> Clamp:
    return Clamp(left=left, until_ms=until_ms, seen_at_ms=seen_at_ms)


def test_reading_holds_until_its_reset_counted_from_the_answer() -> None:
    assert hint_of(reading(), 10_000) == Hint(remaining=20, limit=60, age_ms=10_000, hold_ms=20_000)


@pytest.mark.parametrize(
    ("window", "reset_ms", "hold_ms"),
    [
        (QuotaWindow.MINUTE, 360_000, 60_000),
        (QuotaWindow.MINUTE, None, 60_000),
        (QuotaWindow.DAY, 25 * 3_600_000, 24 * 3_600_000),
        (QuotaWindow.DAY, None, 3_600_000),
    ],
)
def test_no_reading_holds_longer_than_its_window(
    window: QuotaWindow, reset_ms: int | None, hold_ms: int
) -> None:
    found = hint_of(reading(reset_ms=reset_ms, window=window), 0)

    assert found is not None
    assert found.hold_ms == hold_ms


@pytest.mark.parametrize(
    ("remaining", "reset_ms", "age_ms"), [(None, 30_000, 0), (20, 0, 0), (20, 30_000, 30_000)]
)
def test_reading_that_says_nothing_about_now_is_no_hint(
    remaining: int | None, reset_ms: int, age_ms: int
) -> None:
    assert hint_of(reading(remaining, reset_ms), age_ms) is None


def test_provider_that_has_more_left_than_we_think_changes_nothing() -> None:
    noticed = settle_hint(None, hint(45), Count(limit=60, used=15, since=0), T0)

    assert noticed == Noticed(clamp=None)


def test_outside_use_clamps_to_what_is_left_and_is_noticed() -> None:
    noticed = settle_hint(None, hint(20), Count(limit=60, used=10, since=0), T0)

    assert noticed == Noticed(clamp=clamp(20), outside=30)


def test_what_was_reserved_since_the_answer_is_taken_off() -> None:
    noticed = settle_hint(None, hint(20, age_ms=2000), Count(limit=60, used=16, since=6), T0)

    assert noticed.clamp == clamp(14, seen_at_ms=T0 - 2000)
    assert noticed.outside == 30


def test_a_request_or_two_are_not_called_outside_use() -> None:
    noticed = settle_hint(None, hint(48), Count(limit=60, used=10, since=0), T0)

    assert noticed == Noticed(clamp=clamp(48))


def test_lower_limit_of_the_provider_is_told_apart_from_outside_use() -> None:
    noticed = settle_hint(None, hint(20, limit=30), Count(limit=60, used=10, since=0), T0)

    assert noticed == Noticed(clamp=clamp(20), outside=0, is_limit_lower=True)


def test_limit_that_is_not_configured_is_learned_as_a_clamp() -> None:
    noticed = settle_hint(None, hint(20), Count(limit=None, used=10, since=1), T0)

    assert noticed == Noticed(clamp=clamp(19))


def test_limit_that_is_not_stated_is_taken_to_be_ours() -> None:
    noticed = settle_hint(None, hint(20, limit=None), Count(limit=60, used=10, since=0), T0)

    assert noticed == Noticed(clamp=clamp(20), outside=30)


def test_answer_that_was_overtaken_changes_nothing() -> None:
    stored = clamp(5, seen_at_ms=T0 - 100)
    noticed = settle_hint(stored, hint(50, age_ms=101), Count(limit=60, used=0, since=0), T0)

    assert noticed == Noticed(clamp=stored)


def test_newer_answer_replaces_the_clamp_and_may_end_it() -> None:
    stored = clamp(5, seen_at_ms=T0 - 100)

    assert settle_hint(stored, hint(9), Count(limit=60, used=1, since=0), T0).clamp == clamp(9)
    assert settle_hint(stored, hint(60), Count(limit=60, used=1, since=0), T0).clamp is None


@pytest.mark.parametrize(
    "stored", [clamp(5, until_ms=T0), clamp(5, seen_at_ms=T0 + 10**9, until_ms=T0 + 10**9)]
)
def test_clamp_that_is_over_or_from_a_clock_ahead_does_not_overtake(stored: Clamp) -> None:
    noticed = settle_hint(stored, hint(9, age_ms=1), Count(limit=60, used=1, since=0), T0)

    assert noticed.clamp == clamp(9, seen_at_ms=T0 - 1)


def test_clamp_refuses_what_exceeds_it_until_its_end() -> None:
    assert wait_ms(None, 5, T0) == 0
    assert wait_ms(clamp(5), 5, T0) == 0
    assert wait_ms(clamp(4), 5, T0 + 10_000) == 20_000
    assert wait_ms(clamp(4), 5, T0 + 30_000) == 0


def test_clamp_follows_admissions_and_settlements() -> None:
    taken = reserve(clamp(100), 60)

    assert taken.left == 40
    assert correct(taken, estimate=60, actual=10, reserved_at_ms=T0).left == 90
    assert correct(taken, estimate=60, actual=500, reserved_at_ms=T0).left == 0
    assert correct(taken, estimate=60, actual=10, reserved_at_ms=T0 - 1001).left == 40


def test_reservations_of_the_second_before_an_answer_may_be_missing_in_it() -> None:
    assert counts_from(hint(5, age_ms=300), T0) == T0 - 1300


@given(
    remaining=st.integers(0, 200),
    provider_limit=st.none() | st.integers(0, 200),
    limit=st.none() | st.integers(0, 100),
    used=st.integers(0, 150),
    share=st.floats(0, 1),
    age_ms=st.integers(0, 60_000),
    stored=st.none() | st.builds(clamp, st.integers(0, 50), seen_at_ms=st.integers(T0 - 5, T0)),
)
def test_reading_only_ever_tightens(
    remaining: int,
    provider_limit: int | None,
    limit: int | None,
    used: int,
    share: float,
    age_ms: int,
    stored: Clamp | None,
) -> None:
    count = Count(limit=limit, used=used, since=int(used * share))
    given_hint = hint(remaining, limit=provider_limit, age_ms=age_ms)
    noticed = settle_hint(stored, given_hint, count, T0)

    allowed = None if noticed.clamp is None else noticed.clamp.left
    if allowed is None:
        assert limit is not None
        assert limit - used <= max(0, remaining - count.since)  # our count is the tighter one
    elif noticed.clamp is not stored:
        assert allowed == max(0, remaining - count.since)
    assert noticed.outside >= 0


@given(left=st.integers(0, 50), needs=st.lists(st.integers(1, 10), max_size=30))
def test_no_more_than_the_clamp_is_let_through(left: int, needs: list[int]) -> None:
    held, taken = clamp(left), 0
    for need in needs:
        if not wait_ms(held, need, T0):
            held, taken = reserve(held, need), taken + need

    assert taken <= left
