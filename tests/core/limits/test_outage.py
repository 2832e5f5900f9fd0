"""When a whole provider is cut off, who may try it, and what closes it again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.limits.outage import Entry, Outage, enter, fail, release, succeed

T0 = 1_795_000_000_000
REST_MS = 30_000


def failed(outage: Outage, target: str, now_ms: int, *, token: str = "", ago_ms: int = 1) -> Outage:
    return fail(
        outage,
        target,
        token or f"lease-of-{target}",
        reserved_at_ms=now_ms - ago_ms,
        rest_ms=REST_MS,
        now_ms=now_ms,
    )


def opened(now_ms: int = T0) -> Outage:
    outage = Outage()
    for target in "abc":
        outage = failed(outage, target, now_ms)
    return outage


def entered(outage: Outage, token: str, now_ms: int) -> tuple[Outage, Entry]:
    return enter(outage, token, until_ms=now_ms + 60_000, now_ms=now_ms)


def test_third_target_that_fails_within_half_a_minute_opens() -> None:
    outage, states = Outage(), []
    for target, at_ms in (("a", T0), ("b", T0 + 10_000), ("c", T0 + 29_999)):
        outage = failed(outage, target, at_ms)
        states.append(outage.state)

    assert states == [BreakerState.CLOSED, BreakerState.CLOSED, BreakerState.OPEN]
    assert outage.until_ms == T0 + 29_999 + REST_MS


def test_one_target_that_fails_often_opens_nothing() -> None:
    outage = Outage()
    for number in range(20):
        outage = failed(outage, "ab"[number % 2], T0 + number)

    assert outage.state is BreakerState.CLOSED


def test_failures_further_apart_open_nothing() -> None:
    outage = failed(failed(Outage(), "a", T0), "b", T0 + 15_000)

    assert failed(outage, "c", T0 + 30_000).state is BreakerState.CLOSED


def test_success_since_the_first_failure_keeps_it_closed() -> None:
    outage = failed(failed(Outage(), "a", T0), "b", T0 + 2)
    outage = succeed(outage, at_ms=T0 + 1, now_ms=T0 + 3)

    assert failed(outage, "c", T0 + 4).state is BreakerState.CLOSED
    assert failed(failed(outage, "c", T0 + 4), "a", T0 + 5).state is BreakerState.OPEN


def test_success_that_is_told_of_late_closes_what_was_no_outage() -> None:
    outage = failed(failed(failed(Outage(), "a", T0), "b", T0 + 5), "c", T0 + 9)

    assert succeed(outage, at_ms=T0, now_ms=T0 + 20) == outage
    assert succeed(outage, at_ms=T0 + 1, now_ms=T0 + 20).state is BreakerState.CLOSED


def test_nobody_enters_before_its_time_and_one_alone_after_it() -> None:
    outage, early = entered(opened(), "x", T0 + REST_MS - 1)
    outage, first = entered(outage, "x", T0 + REST_MS)
    outage, second = entered(outage, "y", T0 + REST_MS)
    _, again = entered(outage, "x", T0 + REST_MS)

    assert (early, first, second, again) == (Entry.OPEN, Entry.TRIAL, Entry.TAKEN, Entry.TRIAL)


def test_end_of_the_trial_decides() -> None:
    trial, _ = entered(opened(), "x", T0 + REST_MS)
    now_ms = T0 + REST_MS + 1

    well = succeed(trial, at_ms=now_ms, now_ms=now_ms)
    sick = failed(trial, "a", now_ms, token="x")
    nothing, next_one = entered(release(trial, "x"), "y", now_ms)

    assert (well.state, entered(well, "z", now_ms)[1]) == (BreakerState.CLOSED, Entry.PASS)
    assert (sick.state, sick.until_ms) == (BreakerState.OPEN, now_ms + REST_MS)
    assert (nothing.trial, next_one) == ("y", Entry.TRIAL)


def test_others_neither_reopen_nor_free_the_trial() -> None:
    trial, _ = entered(opened(), "x", T0 + REST_MS)

    assert failed(trial, "d", T0 + REST_MS + 1, token="y") == trial
    assert release(trial, "y") == trial


def test_trial_that_never_ends_is_replaced_when_its_lease_is_over() -> None:
    trial, _ = entered(opened(), "x", T0 + REST_MS)

    assert entered(trial, "y", T0 + REST_MS + 59_999)[1] is Entry.TAKEN
    assert entered(trial, "y", T0 + REST_MS + 60_000)[1] is Entry.TRIAL


def test_late_failures_of_an_outage_that_is_over_do_not_count() -> None:
    closed = succeed(opened(), at_ms=T0 + 40_000, now_ms=T0 + 40_000)
    for target in "defg":
        closed = failed(closed, target, T0 + 41_000, ago_ms=5_000)

    assert closed.state is BreakerState.CLOSED
    assert closed.failed == ()


@pytest.mark.parametrize("back_ms", [1, 10**6, 10**9])
def test_clock_that_was_set_back_cuts_nobody_off_for_longer(back_ms: int) -> None:
    assert entered(opened(), "x", T0 - back_ms)[1] is Entry.TRIAL
    trial, _ = entered(opened(), "x", T0 + REST_MS)
    assert entered(trial, "y", T0 - 2 * 3_600_000)[1] is Entry.TRIAL


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["fail", "fail", "fail", "succeed", "enter", "release"]),
        st.sampled_from("abcd"),
        st.integers(0, 20_000),
    ),
    max_size=40,
)


@given(events=EVENTS)
def test_at_most_one_trial_runs_at_a_time(events: list[tuple[str, str, int]]) -> None:
    outage, now_ms, running = Outage(), T0, ""
    for kind, name, gap_ms in events:
        now_ms += gap_ms
        if kind == "enter":
            after, entry = enter(outage, name, until_ms=now_ms + 3_600_000, now_ms=now_ms)
            assert entry is not Entry.TRIAL or running in ("", name)
            running = name if entry is Entry.TRIAL else running
            outage = after
        elif kind == "fail":
            outage = failed(outage, name, now_ms, token=name)
        elif kind == "succeed":
            outage = succeed(outage, at_ms=now_ms, now_ms=now_ms)
        else:
            outage = release(outage, name)
        if outage.state is not BreakerState.HALF_OPEN or outage.trial is None:
            running = ""
