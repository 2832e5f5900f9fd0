"""The usage of a key on a day: what settlements count for, how long, and when it is full."""

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import CAPPED, KEYS, MODEL, NOW_MS, USED, WHOLE, Admission, scores, texts
from tests.lua.usage_model import Used

FREE = Limits()
DAY_MS = 86_400_000
MOST = 2000
REST = "_other _other"
SAVED = KEYS.usage_saved(20261118)
TOLD = KEYS.usage_told("w1")


@pytest.fixture
def admission(each_server: Redis, scripts: Scripts) -> Admission:
    return Admission(each_server, scripts)


def used(admission: Admission) -> dict[str, str]:
    return texts(admission.redis, USED)


def test_a_settlement_counts_its_tokens_cost_and_error(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE))
    told = Used("app m", 30, 20, 5, 1_234, "timeout")

    assert admission.settle("a", MODEL, actual=100, usage=told.words()) == [1, "settled"]

    assert used(admission) == {"app m": "1 70 30 20 5 1234 0", "app m timeout": "1"}
    assert 91 * DAY_MS < admission.redis.pttl(USED) <= 92 * DAY_MS


def test_tokens_without_a_price_are_told_apart(admission: Admission) -> None:
    for name, actual, told in (("a", 100, "30"), ("b", 0, "0"), ("c", 50, "0 0 0 7 -")):
        admission.settle(name, MODEL, actual=actual, usage=("app m", told))

    assert used(admission) == {"app m": "3 120 30 0 0 7 1"}


@pytest.mark.parametrize("ttl_ms", [1_000, 60_000], ids=["expired", "known"])
def test_repeated_settlements_count_once(admission: Admission, ttl_ms: int) -> None:
    admission.reserve("a", (MODEL, FREE), (WHOLE, FREE), ttl_ms=ttl_ms)
    then = NOW_MS + 2_000
    admission.reserve("b", (WHOLE, FREE), now_ms=then)
    replies = [
        admission.settle("a", MODEL, WHOLE, now_ms=then, usage=("app m", "30")) for _ in range(3)
    ]

    assert [reply[0] for reply in replies] == [1, 2, 2]
    assert used(admission) == {"app m": "1 40 30 0 0 0 1"}


def test_late_settlement_counts_once(admission: Admission) -> None:
    for _ in range(2):
        admission.settle("unknown", MODEL, age_s=3, usage=("app m", "30"))

    assert used(admission) == {"app m": "1 40 30 0 0 0 1"}


def test_what_is_refused_as_of_a_stale_day_is_not_counted(admission: Admission) -> None:
    stale = (20261117, NOW_MS - 1)

    assert admission.settle("a", MODEL, day=stale, usage=("app m", "30"))[0] == 0
    assert used(admission) == {}


def test_what_was_given_back_counts_for_nobody(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE))
    admission.settle("a", MODEL, actual=0, counts_request=0)
    admission.reserve("b", (MODEL, FREE))
    admission.settle_many([("b", 0, 0, 0)], MODEL)

    assert used(admission) == {}


def test_a_key_with_caps_counts_as_well(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), caps=(Caps(rpd=9), 1000))

    admission.settle("a", MODEL, weight=1000, usage=("app m", "30"))

    assert used(admission) == {"app m": "1 40 30 0 0 0 1"}
    assert admission.redis.exists(CAPPED)


def test_many_of_several_clients_share_a_call(admission: Admission) -> None:
    for name in "abcd":
        admission.reserve(name, (MODEL, FREE))
    usage = [("app m", "30"), ("app-b m", "20"), ("app m", "10 0 4 - cancelled"), ("app m", "70")]
    ended = [(name, 70, 1, 0) for name in "abcd"]

    assert admission.settle_many(ended, MODEL, usage=usage) == [1, 1, 1, 1, 1]

    assert used(admission) == {
        "app m": "3 100 110 0 4 0 3",
        "app-b m": "1 50 20 0 0 0 1",
        "app m cancelled": "1",
    }


def test_many_count_only_what_they_settle(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE))

    reply = admission.settle_many(
        [("a", 70, 1, 0), ("unknown", 70, 1, 0)], MODEL, usage=[("app m", "1"), ("app-b m", "1")]
    )

    assert reply == [1, 1, 0]
    assert set(used(admission)) == {"app m"}


def test_a_full_day_counts_new_pairs_together_and_known_ones_apart(admission: Admission) -> None:
    rows = {f"app{number} m": "1 1 1 0 0 0 1" for number in range(MOST)}
    admission.redis.hset(USED, mapping=rows)  # type: ignore[arg-type] # its stub is invariant
    admission.redis.expire(USED, 1000)

    admission.settle("a", MODEL, actual=9, usage=("new m", "2 0 0 5 timeout"))
    for name in "bcd":
        admission.reserve(name, (MODEL, FREE))
    ended = [(name, 9, 1, 0) for name in "bcd"]
    usage = [("newer m", "2"), ("app7 m", "2"), ("new m", "2")]
    admission.settle_many(ended, MODEL, usage=usage)

    found = used(admission)
    assert (found[REST], found[f"{REST} timeout"]) == ("3 21 6 0 0 5 2", "1")
    assert found["app7 m"] == "2 8 3 0 0 0 2"
    assert len(found) == MOST + 2


@pytest.mark.parametrize("told", ["", "x", "-1", "1.5", "71", "1 2 3", "1 2 3 4 5", "1 2 3 4 Bad"])
def test_what_was_used_has_to_be_well_formed(admission: Admission, told: str) -> None:
    admission.reserve("a", (MODEL, FREE))
    before = texts(admission.redis, MODEL)

    with pytest.raises(ResponseError, match="GW_BADARG"):
        admission.settle("a", MODEL, usage=("app m", told))
    with pytest.raises(ResponseError, match="GW_BADARG"):
        admission.settle_many([("a", 70, 1, 0)], MODEL, usage=[("app m", told)])

    assert (texts(admission.redis, MODEL), used(admission)) == (before, {})


@pytest.mark.parametrize(("field", "text"), [("app m", "1 2 x"), ("app m timeout", "many")])
def test_a_record_somebody_else_wrote_is_named_and_nothing_is_done(
    admission: Admission, field: str, text: str
) -> None:
    admission.reserve("a", (MODEL, FREE), (WHOLE, FREE))
    before = texts(admission.redis, MODEL)
    admission.redis.hset(USED, field, text)
    admission.redis.expire(USED, 1000)
    told = ("app m", "1 0 0 - timeout")

    with pytest.raises(ResponseError, match="GW_UNREADABLE key 6"):
        admission.settle("a", MODEL, WHOLE, usage=told)
    with pytest.raises(ResponseError, match="GW_UNREADABLE key 6"):
        admission.settle_many([("a", 70, 1, 0)], MODEL, WHOLE, usage=[told])

    assert texts(admission.redis, MODEL) == before


@pytest.fixture
def save(each_server: Redis, scripts: Scripts) -> Callable[..., list[Any]]:
    script = each_server.register_script(scripts["usage/save"].text)

    def run(number: int, *words: str | int) -> list[Any]:
        reply: list[Any] = script(keys=[TOLD, SAVED], args=[number, *words])
        return reply

    return run


def test_savings_count_once_for_each_batch(
    each_server: Redis, save: Callable[..., list[Any]]
) -> None:
    first = ("app p%2Fm", 2, 30, 12, "app-b p%2Fm", 1, 5, 5, "app p%2Fm", 1, 1, 1)

    assert [save(1, *first), save(1, *first), save(2, "app p%2Fm", 1, 1, 1), save(1, *first)] == [
        [1, "ok"],
        [2, "ok"],
        [1, "ok"],
        [2, "ok"],
    ]
    assert texts(each_server, SAVED) == {"app p%2Fm": "4 32 14", "app-b p%2Fm": "1 5 5"}
    assert 0 < each_server.pttl(TOLD) <= DAY_MS
    assert 91 * DAY_MS < each_server.pttl(SAVED) <= 92 * DAY_MS


def test_savings_of_a_full_day_count_together(
    each_server: Redis, save: Callable[..., list[Any]]
) -> None:
    rows = {f"app{number} m": "1 1 1" for number in range(MOST - 1)}
    each_server.hset(SAVED, mapping=rows)  # type: ignore[arg-type] # its stub is invariant
    each_server.expire(SAVED, 1000)

    save(1, "new m", 1, 2, 3, "newer m", 1, 2, 3, "new m", 1, 2, 3, "newest m", 1, 2, 3)

    found = texts(each_server, SAVED)
    assert (found["new m"], found[REST], len(found)) == ("2 4 6", "2 4 6", MOST + 1)


@pytest.mark.parametrize("words", [(), ("app m", 1, 2), ("app m", 1, -2, 3), ("app m", 1, 2, "x")])
def test_savings_have_to_be_well_formed(
    each_server: Redis, save: Callable[..., list[Any]], words: tuple[str | int, ...]
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        save(1, *words)

    assert each_server.keys() == []


def test_savings_that_somebody_else_wrote_are_named(
    each_server: Redis, save: Callable[..., list[Any]]
) -> None:
    each_server.hset(SAVED, "app m", "1 2")
    each_server.expire(SAVED, 1000)

    with pytest.raises(ResponseError, match="GW_UNREADABLE key 2"):
        save(1, "app m", 1, 2, 3)


def test_places_are_noted_until_nothing_of_them_is_kept(
    each_server: Redis, scripts: Scripts
) -> None:
    index = KEYS.usage_index()
    note = each_server.register_script(scripts["usage/note"].text)

    assert note(keys=[index], args=["{p.a}:k", "{p.b}:k", NOW_MS]) == [1, "ok"]
    note(keys=[index], args=["{p.b}:k", NOW_MS - DAY_MS])
    assert set(scores(each_server, index).values()) == {NOW_MS}
    then = NOW_MS + 92 * DAY_MS + 1
    assert note(keys=[index], args=["{p.a}:k", then]) == [1, "ok"]

    assert scores(each_server, index) == {"{p.a}:k": then}
    with pytest.raises(ResponseError, match="GW_BADARG"):
        note(keys=[index], args=["{p.a}:k", -1])
    with pytest.raises(ResponseError, match="GW_BADARG"):
        note(keys=[index], args=[NOW_MS])
