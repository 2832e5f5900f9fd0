import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.quota import Observation, QuotaKind, QuotaWindow
from cluster_gw.core.limits.observe import (
    OLDEST_MS,
    Count,
    Hint,
    Noticed,
    counts_from,
    hint_of,
    notice,
    raised_by,
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
    ("remaining", "reset_ms", "age_ms"),
    [(None, 30_000, 0), (20, 0, 0), (20, 30_000, 30_000), (20, 90_000_000, OLDEST_MS + 1)],
)
def test_reading_that_says_nothing_about_now_is_no_hint(
    remaining: int | None, reset_ms: int, age_ms: int
) -> None:
    assert hint_of(reading(remaining, reset_ms, QuotaWindow.DAY), age_ms) is None


def test_provider_that_has_more_left_than_we_think_changes_nothing() -> None:
    assert raised_by(hint(45), Count(limit=60, used=15, since=5)) == 0
    assert raised_by(hint(60), Count(limit=60, used=15, since=5)) == 0


def test_outside_use_raises_our_count_until_no_more_is_left_than_there() -> None:
    count = Count(limit=60, used=10, since=0)

    assert raised_by(hint(20), count) == 30
    assert notice(hint(20), count) == Noticed(outside=30)


def test_what_the_provider_may_not_have_counted_yet_is_taken_off() -> None:
    assert raised_by(hint(20), Count(limit=60, used=16, since=6)) == 30
    assert raised_by(hint(3), Count(limit=60, used=16, since=6)) == 44


def test_own_requests_on_their_way_are_no_outside_use() -> None:
    """Eight of twelve were counted: the other four are still on their way."""
    count = Count(limit=60, used=12, since=4)

    assert raised_by(hint(52), count) == 0
    assert notice(hint(52), count) == Noticed()


def test_a_request_or_two_are_not_called_outside_use() -> None:
    assert notice(hint(48), Count(limit=60, used=10, since=0)) == Noticed()
    assert notice(hint(47), Count(limit=60, used=10, since=0)) == Noticed(outside=3)


def test_lower_limit_of_the_provider_is_told_apart_from_outside_use() -> None:
    count = Count(limit=60, used=10, since=0)

    assert raised_by(hint(20, limit=30), count) == 30
    assert notice(hint(20, limit=30), count) == Noticed(is_limit_lower=True)


def test_limit_that_is_not_configured_is_not_made_up() -> None:
    count = Count(limit=None, used=10, since=1)

    assert raised_by(hint(0), count) == 0
    assert notice(hint(0), count) == Noticed()


def test_reservations_of_the_second_before_an_answer_may_be_missing_in_it() -> None:
    assert counts_from(hint(5, age_ms=300), T0) == T0 - 1300


@given(
    remaining=st.integers(0, 200),
    limit=st.integers(0, 100),
    used=st.integers(0, 150),
    share=st.floats(0, 1),
)
def test_reading_only_ever_tightens_and_repeating_it_changes_nothing(
    remaining: int, limit: int, used: int, share: float
) -> None:
    count = Count(limit=limit, used=used, since=int(used * share))
    raised = raised_by(hint(remaining), count)
    after = Count(limit=limit, used=used + raised, since=count.since)

    assert raised >= 0
    assert limit - after.used <= max(remaining, 0) or limit - used <= remaining
    assert raised_by(hint(remaining), after) == 0
