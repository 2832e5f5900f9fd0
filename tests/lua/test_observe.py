"""What providers say only ever tightens: single cases, and any history beside one without it."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.observe import Hint
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import HEALTH, MODEL, NOW_MS, OTHER, Admission, texts

HOUR_MS = 3_600_000
DAY = (20_261_118, NOW_MS - NOW_MS % HOUR_MS + 6 * HOUR_MS)
NOTHING = (None, None, None, None)


@pytest.fixture
def admission(each_server: Redis, scripts: Scripts) -> Admission:
    return Admission(each_server, scripts)


def left(remaining: int, hold_ms: int = 30_000, age_ms: int = 0) -> Hint:
    return Hint(remaining=remaining, limit=None, age_ms=age_ms, hold_ms=hold_ms)


def code(reply: list[Any]) -> str:
    return str(reply[1])


def test_count_is_raised_until_no_more_is_left_than_the_provider_has(admission: Admission) -> None:
    limits = Limits(rpm=60)
    admission.reserve("a", (MODEL, limits))

    reply = admission.observe(MODEL, limits, (left(20), *NOTHING[1:]), now_ms=NOW_MS + 5_000)
    again = admission.observe(MODEL, limits, (left(20), *NOTHING[1:]), now_ms=NOW_MS + 5_000)
    granted = admission.reserve("b", (MODEL, limits), now_ms=NOW_MS + 5_000)

    assert reply[2:5] == [39, 1, 0]
    assert again[2:5] == [0, 40, 0]
    assert granted[2] == 19


def test_what_others_used_leaves_when_the_provider_starts_anew(admission: Admission) -> None:
    limits = Limits(rpm=60)
    admission.reserve("a", (MODEL, limits))
    admission.observe(MODEL, limits, (left(0, 30_000), *NOTHING[1:]))

    refused = admission.reserve("b", (MODEL, limits), now_ms=NOW_MS + 29_000)
    granted = admission.reserve("c", (MODEL, limits), now_ms=NOW_MS + 30_000)

    assert (code(refused), refused[3]) == ("rpm", 1_000)
    assert (code(granted), granted[2]) == ("ok", 58)


def test_reservations_of_the_last_second_may_be_missing_in_what_the_provider_counted(
    admission: Admission,
) -> None:
    limits = Limits(rpm=60)
    for number in range(4):
        admission.reserve(f"n{number}", (MODEL, limits))

    on_their_way = admission.observe(MODEL, limits, (left(59), *NOTHING[1:]))
    others = admission.observe(MODEL, limits, (left(50), *NOTHING[1:]))

    assert on_their_way[2:5] == [0, 4, 4]
    assert others[2:5] == [10, 4, 4]


def test_tokens_and_the_rolling_day_are_raised_each_by_itself(admission: Admission) -> None:
    limits = Limits(rpm=60, tpm=10_000, rpd=1_000, tpd=50_000)
    admission.reserve("a", (MODEL, limits), estimate=100)
    later_ms = NOW_MS + 5_000

    hints = (None, left(4_000), left(500, 7 * HOUR_MS), left(49_900))
    reply = admission.observe(MODEL, limits, hints, now_ms=later_ms)
    counted = admission.counters()

    assert reply[2:] == [0, 1, 0, 5_900, 100, 0, 499, 1, 0, 0, 100, 0]
    assert (counted["ts"], counted["hrs"]) == (6_000, 500)
    in_seven_hours = admission.reserve(
        "b", (MODEL, Limits(rpd=2)), now_ms=later_ms + 8 * HOUR_MS, ttl_ms=1_000
    )
    assert code(in_seven_hours) == "ok"


@pytest.mark.parametrize(("hold_ms", "raised"), [(2 * HOUR_MS, 0), (6 * HOUR_MS, 98)])
def test_calendar_day_is_raised_only_where_the_providers_day_ends_with_it(
    admission: Admission, hold_ms: int, raised: int
) -> None:
    limits = Limits(rpd=100)
    admission.reserve("a", (MODEL, limits), day=DAY)

    reply = admission.observe(
        MODEL, limits, (None, None, left(1, hold_ms), None), day=DAY, now_ms=NOW_MS + 5_000
    )

    assert reply[8] == raised


def test_day_that_is_over_by_the_servers_clock_is_told(admission: Admission) -> None:
    reply = admission.observe(MODEL, Limits(rpd=1), NOTHING, day=(20_250_101, NOW_MS))

    assert reply == [0, "day_stale", NOW_MS]


def test_limit_that_is_not_configured_is_left_alone(admission: Admission) -> None:
    admission.reserve("a", (MODEL, Limits()))
    before = admission.counters()

    reply = admission.observe(MODEL, Limits(), (left(0), left(0), left(0), left(0)))

    assert reply[2::3] == [0, 0, 0, 0]
    assert admission.counters() == before


def test_nothing_left_of_a_limit_we_do_not_have_is_a_rest_on_the_providers_word(
    admission: Admission,
) -> None:
    admission.reserve("a", (MODEL, Limits()))
    hints = (left(0, 20_000), left(5), None, None)

    admission.observe(MODEL, Limits(), hints, health=HEALTH[0])
    admission.observe(MODEL, Limits(), (left(0, 10_000), *hints[1:]), health=HEALTH[0])
    refused = admission.reserve("b", (MODEL, Limits()), now_ms=NOW_MS + 5_000)
    trial = admission.reserve("c", (MODEL, Limits()), now_ms=NOW_MS + 20_000)

    assert (code(refused), refused[3]) == ("cooldown", 15_000)
    assert texts(admission.redis, HEALTH[0])["rest_source"] == "authoritative"
    assert (code(trial), trial[6]) == ("ok", 1)


def test_nothing_left_of_a_limit_we_have_is_no_rest(admission: Admission) -> None:
    limits = Limits(rpm=5)
    admission.reserve("a", (MODEL, limits))

    admission.observe(MODEL, limits, (left(0), *NOTHING[1:]), health=HEALTH[0])

    assert not admission.redis.exists(HEALTH[0])
    assert code(admission.reserve("b", (MODEL, limits))) == "rpm"


def test_wrong_arguments_are_an_error(redis: Redis, scripts: Scripts) -> None:
    observe = redis.register_script(scripts["admission/observe"].text)

    with pytest.raises(ResponseError, match="GW_BADARG"):
        observe(keys=[MODEL, HEALTH[0]], args=[0, 0, 0, NOW_MS])

    assert redis.keys() == []


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(1, 300), st.integers(0, 300)),
        st.tuples(st.just("ask"), st.integers(1, 300), st.integers(0, 300)),
        st.tuples(st.just("see"), st.integers(0, 12), st.integers(0, 1_500)),
        st.tuples(st.just("see"), st.integers(0, 12), st.integers(0, 1_500)),
        st.tuples(st.just("wait"), st.sampled_from((0, 400, 3_000, 31_000, 62_000)), st.just(0)),
        st.tuples(st.just("wait"), st.sampled_from((0, 900, 7_000_000)), st.just(0)),
    ),
    max_size=40,
)


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=STEPS,
    hold_ms=st.integers(1, 60_000),
    age_ms=st.sampled_from((0, 300, 20_000)),
    settled=st.booleans(),
)
def test_whatever_headers_say_nothing_is_admitted_that_would_not_be_without_them(
    redis: Redis,
    scripts: Scripts,
    steps: list[tuple[str, int, int]],
    hold_ms: int,
    age_ms: int,
    settled: bool,
) -> None:
    """Beside the window stands one of the same own history that never hears of a header."""
    redis.flushdb()
    admission, now_ms = Admission(redis, scripts), NOW_MS
    limits = Limits(rpm=8, tpm=1_000, rpd=20, tpd=4_000)
    for number, (kind, one, two) in enumerate(steps):
        if kind == "wait":
            now_ms += one
        elif kind == "see":
            hints = (left(one, hold_ms), left(two, hold_ms), left(one, 10**7), left(two, 10**7))
            admission.observe(MODEL, limits, hints, age_ms=age_ms, now_ms=now_ms)
        elif (
            code(admission.reserve(f"n{number}", (MODEL, limits), estimate=one, now_ms=now_ms))
            == "ok"
        ):
            twin = admission.reserve(f"t{number}", (OTHER, limits), estimate=one, now_ms=now_ms)
            assert code(twin) == "ok"
            if settled:
                for lease, window in ((f"n{number}", MODEL), (f"t{number}", OTHER)):
                    admission.settle(lease, window, actual=two, now_ms=now_ms)
        seen, plain = admission.counters(MODEL), admission.counters(OTHER)
        # A lease that expired is taken back by the next question, which only one of them may get.
        if settled and seen and plain and seen["b"] == plain["b"]:
            assert seen["rs"] >= plain["rs"]
            assert seen["ts"] >= plain["ts"]
