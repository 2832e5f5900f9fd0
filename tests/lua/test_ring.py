"""The minute window seen from outside: never above the limit in any 60 s, and not far below it."""

from typing import Final, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis import Redis

from cluster_gw.core.limits.ring import Ring
from cluster_gw.core.limits.windows import MINUTE_BUCKETS, Limits
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import MODEL, NOW_MS, Admission

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
DISPATCH_MS: Final = 1000  # the longest a request may take from its admission to the provider


class Step(NamedTuple):
    """Time passes, maybe up to the edge of a second; then a burst is asked for."""

    pass_ms: int
    edge_ms: int | None  # the millisecond of the second to wait for
    step_back_ms: int
    tokens: int
    delays_ms: list[int]  # one request for each, under way for so long


DELAYS: Final = st.sampled_from([0, DISPATCH_MS]) | st.integers(0, DISPATCH_MS)
STEPS: Final = st.lists(
    st.builds(
        Step,
        pass_ms=st.integers(0, 500) | st.integers(0, 20_000) | st.integers(55_000, 62_000),
        edge_ms=st.sampled_from([None, 0, 999]),
        step_back_ms=st.just(0) | st.just(0) | st.integers(0, 5_000) | st.integers(0, 200_000),
        tokens=st.integers(1, 60),
        delays_ms=st.lists(DELAYS, min_size=1, max_size=4),
    ),
    min_size=5,
    max_size=30,
)
LATE_THEN_EARLY: Final = [  # what a guard for the rounding alone would let through
    Step(pass_ms=0, edge_ms=999, step_back_ms=0, tokens=1, delays_ms=[DISPATCH_MS]),
    Step(pass_ms=60_001, edge_ms=0, step_back_ms=0, tokens=1, delays_ms=[0]),
]


def most_within_a_minute(events: list[tuple[int, int]]) -> int:
    """The largest sum of weights in any half-open span of 60 s."""
    return max(
        sum(weight for at, weight in events if start <= at < start + MINUTE_MS)
        for start, _ in events
    )


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(steps=LATE_THEN_EARLY, rpm=1, tpm=60)
@given(steps=STEPS, rpm=st.integers(1, 8), tpm=st.integers(60, 200))
def test_provider_never_sees_more_than_the_limit_in_any_minute_however_long_dispatch_takes(
    redis: Redis, scripts: Scripts, steps: list[Step], rpm: int, tpm: int
) -> None:
    redis.flushall()
    admission = Admission(redis, scripts)
    true_ms, behind_ms, arrivals = NOW_MS, 0, []

    for number, step in enumerate(steps):
        true_ms += step.pass_ms
        behind_ms += step.step_back_ms
        if step.edge_ms is not None:
            true_ms += (step.edge_ms - (true_ms - behind_ms)) % SECOND_MS
        for part, delay_ms in enumerate(step.delays_ms):
            reply = admission.reserve(
                f"l{number}-{part}",
                (MODEL, Limits(rpm=rpm, tpm=tpm)),
                estimate=step.tokens,
                now_ms=true_ms - behind_ms,
                ttl_ms=HOUR_MS,  # expired leases would return tokens
            )
            if reply[0] == 1:
                arrivals.append((true_ms + delay_ms, step.tokens))

    assert most_within_a_minute([(at, 1) for at, _ in arrivals]) <= rpm
    assert most_within_a_minute(arrivals) <= tpm


@pytest.mark.parametrize(("size", "is_safe"), [(60, False), (61, False), (MINUTE_BUCKETS, True)])
def test_a_minute_needs_a_bucket_for_rounding_and_one_for_dispatch(
    size: int, is_safe: bool
) -> None:
    ring, first_ms = Ring(size, SECOND_MS), NOW_MS + 999
    ring.advance(first_ms)
    ring.add(1, 0)

    opens_ms = first_ms + ring.wait_ms(0, 1, first_ms)

    assert (opens_ms - (first_ms + DISPATCH_MS) >= MINUTE_MS) == is_safe


def test_saturated_window_gives_at_least_57_of_60(redis: Redis, scripts: Scripts) -> None:
    admission = Admission(redis, scripts)
    minutes, limit, admitted, now_ms, number = 10, 12, 0, NOW_MS, 0

    while now_ms < NOW_MS + minutes * MINUTE_MS:
        reply = admission.reserve(f"l{number}", (MODEL, Limits(rpm=limit)), now_ms=now_ms)
        number += 1
        admitted += reply[0]
        now_ms += 0 if reply[0] else reply[3]

    assert admitted >= limit * minutes * 57 / 60
    assert admitted <= limit * (minutes + 1)


@pytest.mark.parametrize("pause_s", [1, 2, 61, 62, 200])
def test_sums_are_those_of_the_seconds_that_still_count(
    redis: Redis, scripts: Scripts, pause_s: int
) -> None:
    admission = Admission(redis, scripts)
    seconds = [*range(70), 69 + pause_s]
    for second in seconds:
        admission.reserve(
            f"l{second}",
            (MODEL, Limits()),
            estimate=second,
            now_ms=NOW_MS + second * SECOND_MS,
            ttl_ms=HOUR_MS,
        )

    alive = [second for second in seconds if second > seconds[-1] - MINUTE_BUCKETS]
    counters = admission.counters()
    assert (counters["rs"], counters["ts"]) == (len(alive), sum(alive))


@pytest.mark.parametrize(
    ("seconds", "stays"), [(MINUTE_BUCKETS, True), (MINUTE_BUCKETS + 1, False)]
)
def test_step_back_of_more_than_a_ring_is_followed(
    redis: Redis, scripts: Scripts, seconds: int, stays: bool
) -> None:
    admission = Admission(redis, scripts)
    admission.reserve("a", (MODEL, Limits()), now_ms=NOW_MS)

    admission.reserve("b", (MODEL, Limits()), now_ms=NOW_MS - seconds * SECOND_MS)

    newest = NOW_MS // SECOND_MS - (0 if stays else seconds)
    assert (admission.counters()["b"], admission.counters()["rs"]) == (newest, 2)


def test_small_step_back_keeps_counting_in_the_newest_second(
    redis: Redis, scripts: Scripts
) -> None:
    admission = Admission(redis, scripts)
    admission.reserve("a", (MODEL, Limits()), now_ms=NOW_MS)

    admission.reserve("b", (MODEL, Limits()), now_ms=NOW_MS - 5_000)

    counters = admission.counters()
    assert counters["b"] == NOW_MS // 1000
    assert counters[f"r{NOW_MS // 1000 % MINUTE_BUCKETS}"] == 2


def test_long_step_back_does_not_block_the_window_until_the_clock_returns(
    redis: Redis, scripts: Scripts
) -> None:
    admission = Admission(redis, scripts)
    admission.reserve("a", (MODEL, Limits(rpm=1)), now_ms=NOW_MS)

    earlier_ms = NOW_MS - 3_000_000
    wait_ms = admission.reserve("b", (MODEL, Limits(rpm=1)), now_ms=earlier_ms)[3]

    assert wait_ms <= MINUTE_BUCKETS * SECOND_MS
    assert admission.reserve("b", (MODEL, Limits(rpm=1)), now_ms=earlier_ms + wait_ms)[0] == 1


def test_lease_from_before_a_long_step_back_is_settled_where_it_was_merged(
    redis: Redis, scripts: Scripts
) -> None:
    admission = Admission(redis, scripts)
    admission.reserve("a", (MODEL, Limits()), now_ms=NOW_MS, estimate=100)
    admission.reserve("b", (MODEL, Limits()), now_ms=NOW_MS - 3_000_000, estimate=1)

    admission.settle("a", MODEL, actual=30, now_ms=NOW_MS - 2_999_000)

    assert admission.counters()["ts"] == 31
