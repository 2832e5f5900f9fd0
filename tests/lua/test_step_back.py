"""After a step back of more than a ring, leases of before are settled where they count now."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import MODEL, NOW_MS, Admission, texts
from tests.lua.client_calls import ClientScripts
from tests.lua.test_ring import most_within_a_minute

HOUR_MS: Final = 3_600_000
BACK_MS: Final = 100_000
TTL_MS: Final = HOUR_MS
PAIR: Final = Limits(rpm=2, tpm=2000)
FREE: Final = Limits()
SECOND: Final = NOW_MS // 1000


@pytest.fixture
def admission(redis: Redis, scripts: Scripts) -> Admission:
    return Admission(redis, scripts)


def take(admission: Admission, lease: str, now_ms: int, **words: Any) -> Any:
    asked = {"estimate": 1000, "prompt": 0, "ttl_ms": TTL_MS} | words
    return admission.reserve(lease, (MODEL, PAIR), now_ms=now_ms, **asked)[0]


def release(admission: Admission, lease: str, now_ms: int) -> Any:
    return admission.settle(lease, MODEL, now_ms=now_ms, actual=0, counts_request=0, second=SECOND)


def release_many(admission: Admission, lease: str, now_ms: int) -> Any:
    return admission.settle_many([(lease, 0, 0, SECOND)], MODEL, now_ms=now_ms)


@pytest.mark.parametrize("end", [release, release_many])
@pytest.mark.parametrize("later_ms", [0, 2000])
def test_a_lease_of_before_is_not_settled_out_of_others_when_its_second_comes_again(
    admission: Admission, end: Callable[[Admission, str, int], Any], later_ms: int
) -> None:
    take(admission, "before", NOW_MS)
    take(admission, "back", NOW_MS - BACK_MS, estimate=0)
    for number in range(2):
        assert take(admission, f"now-{number}", NOW_MS + later_ms * number // 2) == 1

    assert end(admission, "before", NOW_MS + later_ms)[0] == 1

    assert (admission.counters()["rs"], admission.counters()["ts"]) == (2, 2000)
    assert take(admission, "third", NOW_MS + later_ms + 1000) == 0


def test_a_lease_of_before_is_not_taken_back_out_of_others(admission: Admission) -> None:
    take(admission, "before", NOW_MS, ttl_ms=2000)
    take(admission, "back", NOW_MS - BACK_MS, estimate=0)
    for number in range(2):
        take(admission, f"now-{number}", NOW_MS + 500 * number)

    assert take(admission, "third", NOW_MS + 3000) == 0

    assert admission.counters()["ts"] == 2000


def test_a_lease_of_before_is_settled_in_the_second_it_was_moved_to(admission: Admission) -> None:
    take(admission, "before", NOW_MS)
    take(admission, "back", NOW_MS - BACK_MS, estimate=1)
    take(admission, "later", NOW_MS - BACK_MS + 5000, estimate=0, prompt=0)

    admission.settle("before", MODEL, actual=30, now_ms=NOW_MS - BACK_MS + 6000)

    slot = (SECOND - BACK_MS // 1000) % 62
    assert admission.counters()[f"t{slot}"] == 31


def test_what_had_left_when_the_clock_stepped_back_is_corrected_nowhere(
    admission: Admission,
) -> None:
    take(admission, "left", NOW_MS)
    take(admission, "ahead", NOW_MS + 90_000)
    take(admission, "back", NOW_MS)  # by 90 s: into the very second of the first

    release(admission, "left", NOW_MS)

    assert (admission.counters()["rs"], admission.counters()["ts"]) == (2, 2000)


def test_hours_are_not_settled_out_of_others_either(admission: Admission) -> None:
    day = (MODEL, Limits(rpd=3))
    admission.reserve("before", day, now_ms=NOW_MS, ttl_ms=TTL_MS)
    admission.reserve("back", day, now_ms=NOW_MS - 30 * HOUR_MS, ttl_ms=TTL_MS)
    for number in range(3):
        admission.reserve(f"now-{number}", day, now_ms=NOW_MS + 1000 * number, ttl_ms=TTL_MS)

    release(admission, "before", NOW_MS + 4000)

    assert admission.counters()["hrs"] == 3


def test_a_lease_of_a_calendar_day_moves_into_the_hour_its_day_became(
    admission: Admission,
) -> None:
    day = (20261118, NOW_MS + 5 * HOUR_MS)
    admission.reserve("before", (MODEL, FREE), now_ms=NOW_MS, ttl_ms=TTL_MS, day=day)
    admission.reserve("rolling", (MODEL, FREE), now_ms=NOW_MS, ttl_ms=TTL_MS)
    admission.reserve("later", (MODEL, FREE), now_ms=NOW_MS + HOUR_MS - 1, ttl_ms=TTL_MS)

    release(admission, "before", NOW_MS + HOUR_MS - 1)

    hours = admission.counters()
    hour = NOW_MS // HOUR_MS
    assert (hours["hrs"], hours[f"hr{hour % 25}"], hours[f"hr{(hour + 1) % 25}"]) == (2, 1, 1)


def test_a_clients_hold_of_before_is_not_settled_out_of_others(
    redis: Redis, scripts: Scripts
) -> None:
    client, allowance = ClientScripts(redis, scripts), Allowance(rpm=2)
    for hold, now_ms in (("before", NOW_MS), ("back", NOW_MS - BACK_MS)):
        client.hold(hold, allowance, now_ms=now_ms, ttl_ms=TTL_MS)
    for number in range(2):
        client.hold(f"now-{number}", allowance, now_ms=NOW_MS + 1000 * number, ttl_ms=TTL_MS)

    client.settle("before", tokens=0, cost=0, counts_request=0, now_ms=NOW_MS + 2000)

    assert client.minute()["rs"] == 2
    assert client.hold("third", allowance, now_ms=NOW_MS + 3000)[0] == 0


def test_a_lease_that_cannot_be_moved_is_named_before_anything_is_written(
    admission: Admission,
) -> None:
    take(admission, "before", NOW_MS)
    admission.redis.hset(MODEL, "@z", "R soon")
    before = texts(admission.redis, MODEL)

    with pytest.raises(ResponseError, match=r"^GW_UNREADABLE key 4( |$)"):
        take(admission, "back", NOW_MS - BACK_MS)

    assert texts(admission.redis, MODEL) == before


STEPS: Final = st.lists(
    st.tuples(
        st.integers(0, 3_000) | st.integers(0, 110_000),  # time that passes
        st.just(0) | st.just(0) | st.just(0) | st.integers(60_000, 130_000),  # step back
        st.integers(0, 3),  # requests
        st.none() | st.integers(0, 12),  # the one in flight that ends, never sent
    ),
    min_size=4,
    max_size=30,
)
BACK_AND_AGAIN: Final = [
    (0, 0, 1, None),
    (0, 100_000, 1, None),
    (100_000, 0, 1, None),
    (1_000, 0, 1, 0),
    (1_000, 0, 1, None),
]


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(steps=BACK_AND_AGAIN, rpm=2)
@given(steps=STEPS, rpm=st.integers(1, 4))
def test_leases_in_flight_never_exceed_a_minute_whatever_ends_after_a_step_back(
    redis: Redis, scripts: Scripts, steps: list[tuple[int, int, int, int | None]], rpm: int
) -> None:
    redis.flushall()
    admission, held = Admission(redis, scripts), dict[str, int]()
    true_ms, clock_ms = NOW_MS, NOW_MS

    for number, (pass_ms, back_ms, requests, ends) in enumerate(steps):
        true_ms, clock_ms = true_ms + pass_ms, clock_ms + pass_ms - back_ms
        if ends is not None and ends < len(held):
            ended = list(held)[ends]
            del held[ended]
            release(admission, ended, clock_ms)
        for part in range(requests):
            lease, limits = f"l{number}-{part}", (MODEL, Limits(rpm=rpm))
            if admission.reserve(lease, limits, now_ms=clock_ms, ttl_ms=TTL_MS)[0] == 1:
                held[lease] = true_ms
        if held:
            assert most_within_a_minute([(at, 1) for at in held.values()]) <= rpm
