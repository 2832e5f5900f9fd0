"""Many leases in one call: the same as one by one, or left alone."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.batches import UNDONE
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import ACCOUNT, HEALTH, KEYS, MODEL, NOW_MS, SLOT, WHOLE, Admission, scores

FREE = Limits()
WIDE = Limits(rpm=1000, rpd=2000, tpm=10**6, tpd=10**7, concurrency=500)
ROUTE = ((MODEL, WIDE), (WHOLE, Limits(rpm=900, tpm=10**5)), (ACCOUNT, FREE))
WINDOWS = tuple(window for window, _ in ROUTE)
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
TODAY = (20261118, NOW_MS + 5 * HOUR_MS)
Wanted = tuple[str, int, int, int]


@pytest.fixture
def admission(each_server: Redis, scripts: Scripts) -> Admission:
    return Admission(each_server, scripts)


def wanted(*names: str, estimate: int = 100, ttl_ms: int = 30_000) -> list[Wanted]:
    return [(name, estimate, 40, ttl_ms) for name in names]


def state(redis: Redis) -> dict[str, Any]:
    """Every key: its content and how long it lives, to the minute."""
    kinds: dict[bytes, Callable[[str], Any]] = {
        b"hash": redis.hgetall,
        b"zset": lambda key: scores(redis, key),
    }
    return {
        str(key): (
            kinds[str(redis.type(key)).encode()](key),
            round(int(redis.pttl(key)) / MINUTE_MS),
        )
        for key in redis.scan_iter()
    }


def one_by_one(admission: Admission, asked: list[Wanted], **words: Any) -> list[Any]:
    reply: list[Any] = []
    for name, estimate, prompt, ttl_ms in asked:
        code, _, *left = admission.reserve(
            name, *ROUTE, estimate=estimate, prompt=prompt, ttl_ms=ttl_ms, **words
        )
        assert code == 1
        reply += left[:2]
    return [1, NOW_MS // 1000, *reply] if "now_ms" not in words else reply


def usage_of(name: str, actual: int, _counts: int) -> tuple[str, str]:
    """Of some clients; what was used, in either form."""
    client = f"app{int(name[1:]) % 3} m"
    return client, f"{actual // 2}" if actual % 2 else f"{actual // 3} 1 2 {actual} timeout"


@pytest.mark.parametrize("day", [(0, 0), TODAY], ids=["rolling", "calendar"])
def test_many_leave_redis_as_one_by_one_would(admission: Admission, day: tuple[int, int]) -> None:
    redis, dice = admission.redis, random.Random(7)
    asked = [
        (f"l{n}", dice.randint(0, 90), dice.randint(0, 99), dice.randint(1, 90_000))
        for n in range(40)
    ]
    ended = [(name, dice.randint(0, 200), dice.randint(0, 1)) for name, *_ in asked]

    def run(*, is_together: bool) -> tuple[list[Any], dict[str, Any]]:
        redis.flushall()
        admission.reserve("first", *ROUTE, now_ms=NOW_MS - 20_000, ttl_ms=60_000, day=day)
        if is_together:
            told = admission.reserve_many(asked, *ROUTE, day=day)
        else:
            told = one_by_one(admission, asked, day=day)
        long = [one for one, (_, _, _, ttl_ms) in zip(ended, asked, strict=True) if ttl_ms > 3_000]
        halves = ((NOW_MS, long[::2]), (NOW_MS + 2_500, long[1::2]))
        for now_ms, some in halves:
            second = NOW_MS // 1000
            admission.reserve("beat", *ROUTE, now_ms=NOW_MS + 1_200, day=day)  # a new second
            if is_together:
                facts = [(*one, second) for one in some]
                usage = [usage_of(*one) for one in some]
                reply = admission.settle_many(facts, *WINDOWS, now_ms=now_ms, usage=usage)
                assert reply == [1] * (1 + len(some))
                continue
            for name, actual, counts in some:
                settled = admission.settle(
                    *(name, *WINDOWS),
                    now_ms=now_ms,
                    actual=actual,
                    counts_request=counts,
                    second=second,
                    day=day,
                    usage=usage_of(name, actual, counts),
                )
                assert settled == [1, "settled"]
        return told, state(redis)

    assert run(is_together=True) == run(is_together=False)


def test_many_take_a_window_exactly_to_its_limit(admission: Admission) -> None:
    reply = admission.reserve_many(wanted(*"abcde"), (MODEL, Limits(rpm=3)), (WHOLE, FREE))

    assert reply[2:] == [2, -1, 1, -1, 0, -1, *[UNDONE] * 4]
    assert set(admission.leases()) == set("abc")
    assert admission.counters()["rs"] == 3


@pytest.mark.parametrize(
    "limits",
    [Limits(rpd=2), Limits(tpm=250), Limits(tpd=250), Limits(concurrency=2)],
)
def test_every_limit_holds_for_many(admission: Admission, limits: Limits) -> None:
    reply = admission.reserve_many(wanted(*"abcd"), (WHOLE, FREE), (MODEL, limits))

    assert [left == UNDONE for left in reply[2::2]] == [False, False, True, True]
    assert set(admission.leases()) == set(admission.leases(WHOLE)) == set("ab")


def test_what_fits_is_taken_after_what_does_not(admission: Admission) -> None:
    asked = [("a", 60, 0, 30_000), ("large", 60, 0, 30_000), ("b", 30, 0, 30_000)]

    reply = admission.reserve_many(asked, (MODEL, Limits(tpm=100)))

    assert reply[2:] == [-1, 40, UNDONE, UNDONE, -1, 10]


def test_lease_seen_before_is_left_alone(admission: Admission) -> None:
    admission.reserve("running", (MODEL, FREE))
    admission.reserve("over", (MODEL, FREE))
    admission.settle("over", MODEL)

    reply = admission.reserve_many(wanted("running", "over", "new", "new"), (MODEL, FREE))

    assert [left == UNDONE for left in reply[2::2]] == [True, True, False, True]
    assert admission.counters()["rs"] == 3


def test_nothing_is_done_where_health_is_recorded(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE))
    admission.redis.hset(HEALTH[1], "fails", "1")
    before = state(admission.redis)

    assert admission.reserve_many(wanted("b", "c"), (MODEL, FREE)) == [0]
    assert admission.settle_many([("a", 70, 1, 0)], MODEL) == [0]
    assert state(admission.redis) == before


def test_nothing_is_done_where_a_lease_has_expired(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), ttl_ms=1_000)
    later = NOW_MS + 2_000

    assert admission.reserve_many(wanted("b", "c"), (MODEL, FREE), now_ms=later) == [0]
    assert admission.settle_many([("a", 70, 1, 0)], MODEL, now_ms=later) == [1, 0]


def test_nothing_is_done_in_a_day_that_is_over(admission: Admission) -> None:
    day = (20261117, NOW_MS - 1)

    assert admission.reserve_many(wanted("b", "c"), (MODEL, FREE), day=day) == [0]


@pytest.mark.parametrize("step_ms", [1_000, MINUTE_MS + 5, 3 * HOUR_MS, 3 * DAY_MS, -HOUR_MS])
def test_many_move_a_window_as_one_would(admission: Admission, step_ms: int) -> None:
    then, asked = NOW_MS + step_ms, wanted("b", "c")

    def run(*, is_together: bool) -> tuple[list[Any], dict[str, Any]]:
        admission.redis.flushall()
        for n in range(3):
            admission.reserve(f"a{n}", *ROUTE, now_ms=NOW_MS - 1_000 * n, ttl_ms=3_600_000)
        for n in range(3):
            admission.settle(f"a{n}", *WINDOWS)
        for window in WINDOWS:  # no lease is left, so that nothing can expire
            now = str(admission.redis.hget(window, "now")).split(" ")
            admission.redis.hset(window, "now", " ".join((*now[:-1], "9999999999999")))
        if is_together:
            reply = admission.reserve_many(asked, *ROUTE, now_ms=then)
            if reply != [0]:
                return reply[2:], state(admission.redis)
        return one_by_one(admission, asked, now_ms=then), state(admission.redis)

    assert run(is_together=True) == run(is_together=False)


def test_settlement_is_left_alone_unless_it_is_in_flight_in_every_window(
    admission: Admission,
) -> None:
    admission.reserve("both", (MODEL, FREE), (WHOLE, FREE))
    admission.reserve("one", (MODEL, FREE))
    admission.reserve("freed", (MODEL, FREE), (WHOLE, FREE), worker="dead")
    admission.reap("dead")
    ended = [(name, 70, 1, 0) for name in ("both", "one", "freed", "unknown", "both")]

    assert admission.settle_many(ended, MODEL, WHOLE) == [1, 1, 0, 0, 0, 0]
    assert set(admission.leases(WHOLE)) == {"freed"}


def test_lease_of_a_day_that_is_over_is_left_alone(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), ttl_ms=3_600_000)
    later = NOW_MS + 59 * MINUTE_MS
    admission.reserve("b", (MODEL, FREE), now_ms=later)

    ended = [("a", 70, 1, 0), ("b", 70, 1, later // 1000)]

    assert admission.settle_many(ended, MODEL, now_ms=later) == [1, 0, 1]


@pytest.mark.parametrize("outcome", ["failure 0 0 5 60000", "exempt 0 0 5 60000", "rests 0 0"])
def test_end_that_says_something_of_health_is_left_alone(
    admission: Admission, outcome: str
) -> None:
    admission.reserve("a", (MODEL, FREE))

    assert admission.settle_many([("a", 70, 1, 0)], MODEL, outcome=outcome) == [1, 0]


def test_settlement_for_a_window_that_is_gone_is_left_alone(admission: Admission) -> None:
    assert admission.settle_many([("a", 70, 1, 0)], MODEL) == [0]
    assert admission.redis.keys() == []


def test_guess_of_the_slot_may_be_wrong(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE))
    admission.reserve("b", (MODEL, FREE), now_ms=NOW_MS + 2_000)

    ended = [("a", 30, 1, NOW_MS // 1000 + 17), ("b", 50, 0, 0)]

    assert admission.settle_many(ended, MODEL, now_ms=NOW_MS + 2_000) == [1, 1, 1]
    assert (admission.counters()["rs"], admission.counters()["ts"]) == (1, 80)


def test_leases_are_forgotten_like_those_of_one_by_one(admission: Admission) -> None:
    known = KEYS.lease_expiries(SLOT)
    admission.reserve("old", (MODEL, FREE), ttl_ms=1_800_000)
    admission.settle("old", MODEL)
    admission.redis.zadd(known, {"older": NOW_MS + 1})

    admission.reserve_many(wanted("b", "c"), (MODEL, FREE), now_ms=NOW_MS + 12 * MINUTE_MS)

    assert set(scores(admission.redis, known)) == {"old", "b", "c"}


@pytest.mark.parametrize(
    "bad",
    [("", 1, 1, 1), ("a", -1, 1, 1), ("a", 1, -1, 1), ("a", 1, 1, 0), ("a", 1, 1, 3_600_001)],
)
def test_one_bad_lease_spoils_the_call_and_writes_nothing(
    admission: Admission, bad: Wanted
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        admission.reserve_many([*wanted("fine"), bad], (MODEL, FREE))
    with pytest.raises(ResponseError, match="GW_BADARG"):
        admission.reserve_many(wanted("fine"), (MODEL, Limits(rpm=-2)))
    with pytest.raises(ResponseError, match="GW_BADARG"):
        admission.reserve_many(wanted("fine"), (MODEL, FREE), worker="two words")

    assert admission.redis.keys() == []


def test_bad_settlement_spoils_the_call_and_writes_nothing(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE))
    before = state(admission.redis)

    for bad in (("", 1, 1, 0), ("b", -1, 1, 0), ("b", 1, 2, 0)):
        with pytest.raises(ResponseError, match="GW_BADARG"):
            admission.settle_many([("a", 70, 1, 0), bad], MODEL)
    with pytest.raises(ResponseError, match="GW_BADARG"):
        admission.settle_many([("a", 70, 1, 0)], MODEL, now_ms=-1)

    assert state(admission.redis) == before
