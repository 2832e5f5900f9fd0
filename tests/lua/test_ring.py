"""The minute window seen from outside: never above the limit in any 60 s, and not far below it."""

from typing import Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import MODEL, NOW_MS, Admission

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
STEPS: Final = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 500), st.integers(0, 20_000), st.integers(55_000, 62_000)),
        st.one_of(st.just(0), st.just(0), st.integers(0, 5_000), st.integers(0, 200_000)),
        st.integers(1, 60),
    ),
    min_size=5,
    max_size=60,
)


def most_within_a_minute(events: list[tuple[int, int]]) -> int:
    """The largest sum of weights in any span shorter than 60 s."""
    return max(
        sum(weight for at, weight in events if start <= at < start + MINUTE_MS)
        for start, _ in events
    )


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS, rpm=st.integers(1, 8), tpm=st.integers(60, 200))
def test_no_minute_ever_holds_more_than_the_limit_even_when_the_clock_steps_back(
    redis: Redis, scripts: Scripts, steps: list[tuple[int, int, int]], rpm: int, tpm: int
) -> None:
    redis.flushall()
    admission = Admission(redis, scripts)
    true_ms, behind_ms, admitted = NOW_MS, 0, []

    for number, (pass_ms, step_back_ms, tokens) in enumerate(steps):
        true_ms, behind_ms = true_ms + pass_ms, behind_ms + step_back_ms
        reply = admission.reserve(
            f"l{number}",
            (MODEL, Limits(rpm=rpm, tpm=tpm)),
            estimate=tokens,
            now_ms=true_ms - behind_ms,
            ttl_ms=HOUR_MS,  # expired leases would return tokens
        )
        if reply[0] == 1:
            admitted.append((true_ms, tokens))

    assert most_within_a_minute([(at, 1) for at, _ in admitted]) <= rpm
    assert most_within_a_minute(admitted) <= tpm


def test_saturated_window_gives_at_least_sixty_of_sixty_one(redis: Redis, scripts: Scripts) -> None:
    admission = Admission(redis, scripts)
    minutes, limit, admitted, now_ms, number = 10, 12, 0, NOW_MS, 0

    while now_ms < NOW_MS + minutes * MINUTE_MS:
        reply = admission.reserve(f"l{number}", (MODEL, Limits(rpm=limit)), now_ms=now_ms)
        number += 1
        admitted += reply[0]
        now_ms += 0 if reply[0] else reply[3]

    assert admitted >= limit * minutes * 60 // 61
    assert admitted <= limit * (minutes + 1)


def test_small_step_back_keeps_counting_in_the_newest_second(
    redis: Redis, scripts: Scripts
) -> None:
    admission = Admission(redis, scripts)
    admission.reserve("a", (MODEL, Limits()), now_ms=NOW_MS)

    admission.reserve("b", (MODEL, Limits()), now_ms=NOW_MS - 5_000)

    counters = admission.counters()
    assert counters["b"] == NOW_MS // 1000
    assert counters[f"r{NOW_MS // 1000 % 61}"] == 2


def test_long_step_back_does_not_block_the_window_until_the_clock_returns(
    redis: Redis, scripts: Scripts
) -> None:
    admission = Admission(redis, scripts)
    admission.reserve("a", (MODEL, Limits(rpm=1)), now_ms=NOW_MS)

    earlier_ms = NOW_MS - 3_000_000
    wait_ms = admission.reserve("b", (MODEL, Limits(rpm=1)), now_ms=earlier_ms)[3]

    assert wait_ms <= 61_000
    assert admission.reserve("b", (MODEL, Limits(rpm=1)), now_ms=earlier_ms + wait_ms)[0] == 1


def test_lease_from_before_a_long_step_back_is_settled_where_it_was_merged(
    redis: Redis, scripts: Scripts
) -> None:
    admission = Admission(redis, scripts)
    admission.reserve("a", (MODEL, Limits()), now_ms=NOW_MS, estimate=100)
    admission.reserve("b", (MODEL, Limits()), now_ms=NOW_MS - 3_000_000, estimate=1)

    admission.settle("a", MODEL, actual=30, now_ms=NOW_MS - 2_999_000)

    assert admission.counters()["ts"] == 31
