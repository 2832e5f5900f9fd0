import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.cooldown import DAY_MS, Cause, Climb, Cooldown, Source
from cluster_gw.core.limits.rest import (
    LADDER_MS,
    REPEAT_MS,
    REST_MAX_MS,
    Rest,
    apply,
    is_resting,
    lift,
    owes_trial,
    succeed,
)

T0 = 1_795_000_000_000
SECOND_MS = 1000
MINUTE_MS = 60_000
HOUR_MS = 3_600_000
SPENT = Cooldown(reason=Cause.RATE_LIMIT, wait_ms=90_000, climb=Climb.DAY_SPENT)
REPEATED = Cooldown(
    reason=Cause.RATE_LIMIT, wait_ms=90_000, climb=Climb.REPEATED, step_cap_ms=10 * MINUTE_MS
)
COOLDOWNS = st.builds(
    Cooldown,
    source=st.sampled_from(Source),
    reason=st.sampled_from(Cause),
    wait_ms=st.integers(1, DAY_MS),
    until_ms=st.just(0) | st.integers(T0, T0 + DAY_MS),
    stated_ms=st.integers(0, DAY_MS),
    climb=st.sampled_from(Climb),
    step_cap_ms=st.integers(MINUTE_MS, DAY_MS),
)
BOOKINGS = st.lists(
    st.tuples(COOLDOWNS, st.integers(0, 2 * HOUR_MS), st.integers(0, HOUR_MS), st.booleans()),
    max_size=12,
)  # what, how long after the one before, how long its lease was out, whether the day is spent


def booked(
    rest: Rest, cooldown: Cooldown, now_ms: int, *, lease_ms: int = 1, day_spent: bool = True
) -> Rest:
    return apply(
        rest, cooldown, reserved_at_ms=now_ms - lease_ms, now_ms=now_ms, day_spent=day_spent
    )


def test_ladder_climbs_with_each_incident_and_stays_on_its_last_step() -> None:
    rest, now_ms, waits = Rest(), T0, []
    for _ in range(5):
        rest = booked(rest, SPENT, now_ms)
        waits.append(rest.until_ms - now_ms)
        now_ms = rest.until_ms + 1 if len(waits) < 4 else now_ms + 1000

    assert waits[:4] == list(LADDER_MS)
    assert waits[4] >= LADDER_MS[3]


def test_ladder_forgets_hits_of_yesterday() -> None:
    rest = booked(booked(Rest(), SPENT, T0), SPENT, T0 + HOUR_MS)

    later_ms = T0 + DAY_MS + 1
    assert booked(rest, SPENT, later_ms).until_ms == later_ms + LADDER_MS[1]
    much_later_ms = T0 + 2 * DAY_MS
    assert booked(rest, SPENT, much_later_ms).until_ms == much_later_ms + LADDER_MS[0]


def test_rate_limit_with_a_day_that_is_not_spent_takes_no_step() -> None:
    rest = booked(Rest(), SPENT, T0, day_spent=False)

    assert (rest.until_ms, rest.hits) == (T0 + 90_000, ())


def test_unknown_day_limit_climbs_from_the_second_hit_within_an_hour() -> None:
    first = booked(Rest(), REPEATED, T0)
    second = booked(first, REPEATED, T0 + REPEAT_MS - 1)

    assert (first.until_ms, first.hits) == (T0 + 90_000, ())
    assert second.until_ms == T0 + REPEAT_MS - 1 + LADDER_MS[0]


def test_unknown_day_limit_takes_no_step_after_a_quiet_hour() -> None:
    first = booked(Rest(), REPEATED, T0)

    assert booked(first, REPEATED, T0 + REPEAT_MS).hits == ()


def test_unknown_day_limit_never_climbs_above_ten_minutes() -> None:
    rest, now_ms = Rest(), T0
    for _ in range(6):
        rest = booked(rest, REPEATED, now_ms)
        assert rest.until_ms - now_ms <= 10 * MINUTE_MS
        now_ms = rest.until_ms + 1


def test_concurrent_failures_of_one_incident_count_once() -> None:
    first = booked(Rest(), SPENT, T0)
    rest = first
    for late_ms in range(1, 50):
        rest = booked(rest, SPENT, T0 + late_ms, lease_ms=late_ms)

    assert rest == first


def test_late_failures_of_an_incident_do_not_stretch_a_guess() -> None:
    missing = Cooldown(reason=Cause.MISSING, wait_ms=90_000)
    first = booked(Rest(), missing, T0)

    assert booked(first, missing, T0 + 60_000, lease_ms=60_001) == first


def test_late_failure_of_an_incident_still_tells_what_the_provider_states() -> None:
    first = booked(Rest(), SPENT, T0)
    stated = Cooldown(reason=Cause.RATE_LIMIT, wait_ms=90_000, stated_ms=HOUR_MS)
    rest = booked(first, stated, T0 + 5, lease_ms=10)

    assert (rest.until_ms, rest.source) == (T0 + 5 + HOUR_MS, Source.AUTHORITATIVE)
    assert (rest.hits, rest.set_at_ms) == (first.hits, T0)


def test_late_failure_after_the_rest_adds_no_hit() -> None:
    first = booked(Rest(), SPENT, T0)
    now_ms = first.until_ms + SECOND_MS
    rest = booked(first, SPENT, now_ms, lease_ms=10 * MINUTE_MS)

    assert (rest.until_ms, rest.hits) == (now_ms + 90_000, first.hits)


def test_stated_wait_wins_only_when_it_is_longer() -> None:
    shorter = booked(Rest(), Cooldown(reason=Cause.MISSING, wait_ms=90_000, stated_ms=5000), T0)
    longer = booked(Rest(), Cooldown(reason=Cause.MISSING, wait_ms=90_000, stated_ms=90_001), T0)

    assert (shorter.until_ms - T0, shorter.source) == (90_000, Source.HEURISTIC)
    assert (longer.until_ms - T0, longer.source) == (90_001, Source.AUTHORITATIVE)


def test_longer_rest_keeps_its_source_and_reason() -> None:
    credit = Cooldown(source=Source.CREDIT, reason=Cause.CREDIT, wait_ms=DAY_MS)
    rest = booked(booked(Rest(), credit, T0), SPENT, T0 + 10)

    assert (rest.source, rest.reason, rest.until_ms) == (Source.CREDIT, Cause.CREDIT, T0 + DAY_MS)


def test_rest_lasts_to_an_instant_when_that_is_later() -> None:
    daily = Cooldown(
        source=Source.AUTHORITATIVE,
        reason=Cause.DAILY_QUOTA,
        wait_ms=MINUTE_MS,
        until_ms=T0 + HOUR_MS,
    )

    assert booked(Rest(), daily, T0).until_ms == T0 + HOUR_MS
    assert booked(Rest(), daily, T0 + HOUR_MS).until_ms == T0 + HOUR_MS + MINUTE_MS


@given(bookings=BOOKINGS)
def test_no_later_write_ends_a_rest_sooner(
    bookings: list[tuple[Cooldown, int, int, bool]],
) -> None:
    rest, now_ms = Rest(), T0
    for cooldown, gap_ms, lease_ms, day_spent in bookings:
        now_ms += gap_ms
        after = booked(rest, cooldown, now_ms, lease_ms=lease_ms, day_spent=day_spent)

        assert not is_resting(rest, now_ms) or after.until_ms >= rest.until_ms
        assert is_resting(after, now_ms)
        assert after.until_ms >= now_ms + cooldown.stated_ms
        assert after.until_ms <= now_ms + REST_MAX_MS
        rest = after


@given(bookings=BOOKINGS)
def test_at_most_one_hit_is_added_and_never_by_a_lease_from_before(
    bookings: list[tuple[Cooldown, int, int, bool]],
) -> None:
    rest, now_ms = Rest(), T0
    for cooldown, gap_ms, lease_ms, day_spent in bookings:
        now_ms += gap_ms
        after = booked(rest, cooldown, now_ms, lease_ms=lease_ms, day_spent=day_spent)

        new = [at for at in after.hits if at not in rest.hits]
        assert new in ([], [now_ms])
        assert not (new and now_ms - lease_ms <= rest.set_at_ms)
        assert len(after.hits) <= 3
        rest = after


@given(gaps_ms=st.lists(st.integers(1, HOUR_MS), min_size=2, max_size=8))
def test_each_incident_of_one_day_rests_at_least_as_long_as_the_one_before(
    gaps_ms: list[int],
) -> None:
    rest, now_ms, steps = Rest(), T0, []
    for gap_ms in gaps_ms:
        now_ms += gap_ms
        before = rest
        rest = booked(rest, SPENT, now_ms, lease_ms=0)
        own = booked(ladder_alone(before), SPENT, now_ms, lease_ms=0)
        steps.append(own.until_ms - now_ms)

    assert steps == sorted(steps)
    assert set(steps) <= set(LADDER_MS)


def ladder_alone(rest: Rest) -> Rest:
    """The same ladder without a rest in force."""
    return Rest(hits=rest.hits, limited_at_ms=rest.limited_at_ms)


def test_success_after_a_rest_forgets_everything() -> None:
    rest = booked(Rest(), SPENT, T0)
    now_ms = rest.until_ms + 10

    after = succeed(rest, reserved_at_ms=rest.until_ms + 1, now_ms=now_ms)
    assert after == Rest(set_at_ms=T0)
    assert booked(after, SPENT, now_ms, lease_ms=now_ms - T0).hits == ()


def test_success_from_before_the_rest_forgets_nothing() -> None:
    rest = booked(Rest(), SPENT, T0)

    assert succeed(rest, reserved_at_ms=T0 - 1, now_ms=T0 + HOUR_MS) == rest
    assert succeed(rest, reserved_at_ms=T0, now_ms=T0 + HOUR_MS) == rest


def test_success_during_a_rest_clears_the_ladder_and_leaves_the_rest() -> None:
    rest = booked(booked(Rest(), REPEATED, T0), REPEATED, T0 + HOUR_MS // 2)
    now_ms = T0 + HOUR_MS // 2 + 10
    after = succeed(rest, reserved_at_ms=now_ms - 1, now_ms=now_ms)

    assert (after.until_ms, after.hits, after.limited_at_ms) == (rest.until_ms, (), 0)


def test_probe_lifts_a_guess_and_keeps_the_ladder() -> None:
    rest = booked(Rest(), SPENT, T0)

    lifted = lift(rest)

    assert not is_resting(lifted, T0 + 1)
    assert not owes_trial(lifted, T0 + 1)
    assert (lifted.hits, lifted.set_at_ms) == (rest.hits, T0)


@pytest.mark.parametrize("source", [Source.AUTHORITATIVE, Source.CREDIT, Source.TIER])
def test_probe_lifts_nothing_but_a_guess(source: Source) -> None:
    rest = booked(Rest(), Cooldown(source=source, reason=Cause.TIER, wait_ms=DAY_MS), T0)

    assert lift(rest) == rest


def test_first_use_after_a_rest_is_a_trial_until_one_succeeds() -> None:
    rest = booked(Rest(), SPENT, T0)

    assert not owes_trial(Rest(), T0)
    assert not owes_trial(rest, rest.until_ms - 1)
    assert owes_trial(rest, rest.until_ms)


def test_rest_written_by_a_clock_that_ran_ahead_is_over() -> None:
    rest = booked(Rest(), SPENT, T0 + 400 * DAY_MS)

    assert not is_resting(rest, T0)
    assert booked(rest, SPENT, T0 + 500 * DAY_MS).until_ms == T0 + 500 * DAY_MS + LADDER_MS[0]
