import pytest
from redis import Redis

from cluster_gw.core.limits.windows import Gate, Limits, calendar_day
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import MODEL, NOW_MS, Admission

ZONE = "America/Los_Angeles"
HOUR_MS = 3_600_000
LIMITS = (MODEL, Limits(rpd=1))


@pytest.fixture
def admission(redis: Redis, scripts: Scripts) -> Admission:
    return Admission(redis, scripts)


def day_at(now_ms: int) -> tuple[int, int]:
    day = calendar_day(now_ms, ZONE)
    return day.id, day.end_ms


TODAY = day_at(NOW_MS)
TOMORROW = day_at(TODAY[1])


def test_calendar_day_opens_at_midnight_of_its_zone(admission: Admission) -> None:
    admission.reserve("a", LIMITS, day=TODAY)

    reply = admission.reserve("b", LIMITS, day=TODAY)

    assert reply[:4] == [0, Gate.RPD, 1, TODAY[1] - NOW_MS]
    assert admission.reserve("b", LIMITS, day=TOMORROW, now_ms=TODAY[1])[0] == 1
    assert admission.counters()["dr"] == 1


def test_day_that_has_ended_is_refused_with_the_servers_clock(admission: Admission) -> None:
    now_ms = TODAY[1]

    assert admission.reserve("a", LIMITS, day=TODAY, now_ms=now_ms) == [
        *(0, Gate.DAY_STALE, 0, 0, now_ms)
    ]
    assert admission.redis.keys() == []


def test_day_that_ends_too_far_ahead_is_refused_as_well(admission: Admission) -> None:
    after_tomorrow = day_at(TOMORROW[1])

    assert admission.reserve("a", LIMITS, day=after_tomorrow)[1] == Gate.DAY_STALE


def test_fast_clock_of_a_caller_cannot_start_tomorrow_early(admission: Admission) -> None:
    late_ms = TODAY[1] - 1000  # tomorrow ends within 26 h, so it is plausible
    admission.reserve("a", LIMITS, day=TODAY, now_ms=late_ms)

    assert admission.reserve("b", LIMITS, day=TOMORROW, now_ms=late_ms)[1] == Gate.RPD
    assert admission.counters()["d"] == TODAY[0]


def test_smaller_day_id_after_the_stored_day_ended_does_not_reopen_it(
    admission: Admission,
) -> None:
    admission.reserve("a", LIMITS, day=TOMORROW, now_ms=TODAY[1])
    wrong_name = (TODAY[0], TOMORROW[1] + HOUR_MS)

    reply = admission.reserve("b", LIMITS, day=wrong_name, now_ms=TOMORROW[1])

    assert reply[1] == Gate.RPD


def test_settlement_corrects_the_day_it_was_reserved_in(admission: Admission) -> None:
    admission.reserve("a", (MODEL, Limits()), day=TODAY, estimate=100)

    admission.settle("a", MODEL, actual=30, day=TODAY)

    assert (admission.counters()["dr"], admission.counters()["dt"]) == (1, 30)


def test_settlement_on_the_next_day_leaves_that_day_alone(admission: Admission) -> None:
    admission.reserve("a", (MODEL, Limits()), day=TODAY, ttl_ms=HOUR_MS, now_ms=TODAY[1] - 1)
    admission.reserve("b", (MODEL, Limits()), day=TOMORROW, estimate=5, now_ms=TODAY[1])

    admission.settle("a", MODEL, actual=900, day=TOMORROW, now_ms=TODAY[1] + 1)

    assert (admission.counters()["dr"], admission.counters()["dt"]) == (1, 5)


def test_expired_lease_returns_its_tokens_to_its_day(admission: Admission) -> None:
    admission.reserve("a", (MODEL, Limits()), day=TODAY, estimate=100, prompt=40, ttl_ms=1000)

    admission.reserve("b", (MODEL, Limits()), day=TODAY, estimate=1, now_ms=NOW_MS + 1000)

    assert (admission.counters()["dr"], admission.counters()["dt"]) == (2, 41)


def test_unknown_lease_with_a_stale_day_is_sent_back_not_charged(admission: Admission) -> None:
    now_ms = TODAY[1]

    assert admission.settle("ghost", MODEL, day=TODAY, now_ms=now_ms) == [0, "day_stale", now_ms]
    assert admission.settle("ghost", MODEL, day=TOMORROW, now_ms=now_ms) == [1, "late"]


def test_known_lease_is_settled_whatever_day_the_caller_thinks_it_is(
    admission: Admission,
) -> None:
    admission.reserve("a", LIMITS, day=TODAY)

    assert admission.settle("a", MODEL, day=TODAY, now_ms=TODAY[1]) == [1, "settled"]


def test_what_was_counted_goes_on_counting_when_the_kind_of_day_is_changed(
    admission: Admission,
) -> None:
    two = (MODEL, Limits(rpd=2))
    admission.reserve("a", two, estimate=10, now_ms=NOW_MS - HOUR_MS)
    admission.reserve("b", two, estimate=20)

    assert admission.reserve("c", two, day=TODAY)[1] == Gate.RPD
    admission.settle("b", MODEL, actual=0, counts_request=0)
    assert admission.reserve("c", two, day=TODAY, estimate=5)[1] == "ok"
    assert (admission.counters()["dr"], admission.counters()["dt"]) == (2, 15)


def test_refusal_after_the_kind_of_day_was_changed_loses_no_second(admission: Admission) -> None:
    """What was written at once must not lack the second that is over: it could never leave."""
    bound = (MODEL, Limits(rpm=20, tpm=5000))
    for number in range(10):
        admission.reserve(f"c{number}", bound, day=TODAY)

    assert admission.reserve("large", bound, estimate=9000, now_ms=NOW_MS + 1000)[0] == 0
    assert (
        admission.reserve_many(
            [("x", 9000, 0, 30_000), ("y", 9000, 0, 30_000)], bound, now_ms=NOW_MS + 1000
        )[2:]
        == [-2] * 4
    )

    counters = admission.counters()
    assert counters["rs"] == 10
    assert sum(counters.get(f"r{slot}", 0) for slot in range(62)) == 10
    admission.reserve("later", bound, now_ms=NOW_MS + 63_000)
    assert admission.counters()["rs"] == 1


def test_days_that_become_rolling_leave_with_the_hour_of_the_change(admission: Admission) -> None:
    free = (MODEL, Limits())
    for hour in range(3):  # hours that must not be taken out again later
        admission.reserve(f"h{hour}", free, now_ms=NOW_MS + HOUR_MS * hour)
    later_ms = NOW_MS + 3 * HOUR_MS
    admission.reserve("a", free, day=TODAY, now_ms=later_ms)

    admission.reserve("b", free, now_ms=later_ms)

    assert admission.counters()["hrs"] == 5
    admission.reserve("c", free, now_ms=later_ms + 24 * HOUR_MS)
    assert admission.counters()["hrs"] == 6
    admission.reserve("d", free, now_ms=later_ms + 25 * HOUR_MS)
    assert admission.counters()["hrs"] == 2
