"""The scripts of the cache: one leads, others follow, late ones are fenced off, caps hold."""

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from tests.lua.cache_calls import DIGEST, LEASE_MS, RECORDS, TTL_MS, CacheScripts, member
from tests.lua.calls import NOW_MS

KEYS = Keys("gw1")
DAY_MS = 86_400_000


@pytest.fixture
def cache(redis: Redis, scripts: Scripts) -> CacheScripts:
    return CacheScripts(redis, scripts)


def test_the_first_leads_and_the_others_follow(cache: CacheScripts) -> None:
    assert cache.look("w1") == [1, "lead", NOW_MS]
    assert cache.look("w2") == [1, "follow", NOW_MS]
    assert cache.look("w3") == [1, "follow", NOW_MS]
    assert cache.look("w2") == [1, "follow", NOW_MS]
    assert cache.redis.hget(KEYS.cache_lead(DIGEST), "ears") == "w2 w3"
    assert cache.look("w4", form="2") == [0, "alien"]


def test_what_was_published_is_found_until_it_ends(cache: CacheScripts) -> None:
    cache.look("w1")
    assert cache.publish("w1", NOW_MS, "body") == [1, "ok"]

    entry = f"1 {NOW_MS} {NOW_MS + TTL_MS}\nbody"
    assert cache.look("w2", now_ms=NOW_MS + 7) == [1, "found", entry, 7, 0]
    assert cache.look("w2", now_ms=NOW_MS - 7) == [1, "found", entry, 0, 0]
    assert cache.look("w2", form="2") == [1, "lead", NOW_MS]
    assert cache.look("w2", "cd" * 32)[1] == "lead"
    assert cache.look("w3", now_ms=NOW_MS + LEASE_MS + TTL_MS)[1] == "lead"


def test_a_lead_that_is_followed_ends_less_than_a_second_after_its_last_renewal(
    cache: CacheScripts,
) -> None:
    cache.look("w1")
    assert cache.renew("w1", NOW_MS) == [1, "ok", 0]
    assert cache.look("w2", now_ms=NOW_MS + 10_000)[1] == "follow"
    assert cache.renew("w1", NOW_MS, now_ms=NOW_MS + 10_500) == [1, "ok", 1]
    assert cache.look("w2", now_ms=NOW_MS + 11_299)[1] == "follow"
    assert cache.follow(NOW_MS, now_ms=NOW_MS + 11_299) == [1, "ok", 0]
    assert cache.follow(NOW_MS, now_ms=NOW_MS + 11_300) == [1, "over", 0, ""]

    assert cache.look("w2", now_ms=NOW_MS + 11_300) == [1, "lead", NOW_MS + 11_300]
    assert cache.renew("w1", NOW_MS) == [0, "stale"]
    assert cache.feed("w1", NOW_MS, 0, "late") == [0, "stale"]
    assert cache.publish("w1", NOW_MS, "late") == [0, "stale"]
    assert cache.give_up("w1", NOW_MS) == [0, "stale"]


def test_a_token_is_good_for_its_owner_only(cache: CacheScripts) -> None:
    cache.look("w1")

    assert cache.renew("w2", NOW_MS) == [0, "stale"]
    assert cache.feed("w2", NOW_MS, 0, "a") == [0, "stale"]
    assert cache.publish("w2", NOW_MS, "body") == [0, "stale"]
    assert cache.give_up("w2", NOW_MS) == [0, "stale"]


def test_a_token_grows_although_the_clock_steps_back(cache: CacheScripts) -> None:
    cache.look("w1")

    assert cache.look("w2", now_ms=NOW_MS - DAY_MS) == [1, "lead", NOW_MS + 1]


def test_a_feed_is_read_in_order_and_each_piece_stands_in_it_once(cache: CacheScripts) -> None:
    cache.look("w1")
    cache.look("w2")
    assert cache.feed("w1", NOW_MS, 0, "a", "b") == [1, "ok", 2]
    assert cache.feed("w1", NOW_MS, 1, "b", "c") == [1, "ok", 3]
    assert cache.feed("w1", NOW_MS, 0, "a") == [1, "ok", 3]
    assert cache.feed("w1", NOW_MS, 4, "e") == [0, "gap", 3]

    assert cache.follow(NOW_MS) == [1, "ok", 3, "a", "b", "c"]
    assert cache.follow(NOW_MS, 2) == [1, "ok", 3, "c"]
    assert cache.publish("w1", NOW_MS, "abc") == [1, "ok"]
    assert cache.follow(NOW_MS, 3) == [1, "over", 3, "kept"]


def test_who_follows_is_told_why_a_leader_gave_up_and_one_of_them_leads(
    cache: CacheScripts,
) -> None:
    cache.look("w1")
    cache.look("w2")
    assert cache.give_up("w1", NOW_MS, "error") == [1, "ok"]

    assert cache.follow(NOW_MS) == [1, "over", 0, "error"]
    assert cache.look("w2") == [1, "lead", NOW_MS + 1]
    assert cache.look("w3") == [1, "follow", NOW_MS + 1]
    assert cache.follow(NOW_MS) == [1, "over", 0, ""]


def test_nothing_is_left_of_a_lead_that_nobody_followed(cache: CacheScripts) -> None:
    cache.look("w1")
    cache.give_up("w1", NOW_MS)

    assert cache.redis.keys() == []


def test_who_leads_and_who_follows_is_woken_by_name(cache: CacheScripts) -> None:
    listening = cache.redis.pubsub(  # type: ignore[no-untyped-call]
        ignore_subscribe_messages=True
    )
    listening.subscribe(*map(KEYS.cache_ear, ("w1", "w2", "w3")))
    cache.look("w1")
    cache.look("w2")
    cache.look("w2")
    cache.feed("w1", NOW_MS, 0, "a")
    cache.publish("w1", NOW_MS, "a")

    heard = [message for _ in range(9) if (message := listening.get_message(timeout=0.1))]
    listening.close()

    assert [(one["channel"], one["data"]) for one in heard] == [
        (KEYS.cache_ear("w1"), f"follow {DIGEST}"),
        (KEYS.cache_ear("w2"), f"feed {DIGEST}"),
        (KEYS.cache_ear("w2"), f"feed {DIGEST}"),
    ]


@pytest.mark.parametrize(
    ("left_ms", "roll", "is_due"),
    [
        (TTL_MS // 10, 0, False),
        (TTL_MS // 10 - 100, 9, True),
        (TTL_MS // 10 - 100, 10, False),
        (TTL_MS // 20, 499, True),
        (TTL_MS // 20, 500, False),
        (1, 999, True),
    ],
)
def test_an_entry_that_ends_soon_is_fetched_anew_by_chance(
    left_ms: int, roll: int, is_due: bool, cache: CacheScripts
) -> None:
    cache.look("w1")
    cache.publish("w1", NOW_MS, "body")
    at_ms = NOW_MS + TTL_MS - left_ms

    reply = cache.look("w2", roll=roll, now_ms=at_ms)

    assert reply[1] == "found"
    assert reply[4] == (at_ms if is_due else 0)
    assert cache.look("w3", roll=0, now_ms=at_ms)[4] == (
        0 if is_due or left_ms == 10_000 else at_ms
    )


def test_what_is_no_entry_is_told_and_not_read(cache: CacheScripts) -> None:
    cache.redis.set(KEYS.cached(DIGEST), "garbage", px=1000)
    with pytest.raises(ResponseError, match="GW_UNREADABLE key 2"):
        cache.look("w1")

    cache.redis.hset(KEYS.cache_lead("x"), "token", "garbage")
    cache.redis.pexpire(KEYS.cache_lead("x"), 1000)
    with pytest.raises(ResponseError, match="GW_UNREADABLE key 1"):
        cache.look("w1", "x")


def test_the_entry_that_was_used_longest_ago_makes_room(cache: CacheScripts) -> None:
    for at, name in enumerate("abc"):
        assert cache.admit(name, now_ms=NOW_MS + at) == [1, "ok"]
    assert cache.touch(("a", 0), ("gone", 0), now_ms=NOW_MS + 5) == [1, "ok", 1]
    assert cache.touch(("a", 5), now_ms=NOW_MS + 6) == [1, "ok", 0]

    assert cache.admit("d", now_ms=NOW_MS + 9) == [1, "ok", member("b")]
    assert cache.admit("e", 900, now_ms=NOW_MS + 9) == [1, "ok", member("c"), member("a")]
    assert cache.admit("f", 1001) == [0, "too_large"]
    assert cache.stats() == {
        "entries": 2,
        "doomed": 3,
        "bytes": 1000,
        "stored": 5,
        "evicted": 3,
        "hits": 0,
        "misses": 0,
        "saved_prompt": 0,
        "saved_completion": 0,
        "expired": 0,
        "removed": 0,
    }


def test_a_victim_is_named_again_until_somebody_has_deleted_it(cache: CacheScripts) -> None:
    most = (1, 1000)
    cache.admit("a", most=most)
    assert cache.admit("b", most=most) == [1, "ok", member("a")]
    assert cache.admit("b", most=most, now_ms=NOW_MS + 999) == [1, "ok"]
    assert cache.admit("b", most=most, now_ms=NOW_MS + 1000) == [1, "ok", member("a")]
    assert cache.flush("nobody", now_ms=NOW_MS + 2000) == [1, "ok", "0", 0, member("a")]
    assert cache.confirm(member("b"), "a") == [1, "ok", 1]
    assert cache.admit("b", most=most, now_ms=NOW_MS + 9000) == [1, "ok"]


def test_what_left_the_index_before_it_was_written_is_not_confirmed(cache: CacheScripts) -> None:
    cache.admit("a")
    assert cache.confirm(member("a")) == [1, "ok", 1]
    assert cache.flush_all() == {member("a")}

    assert cache.confirm(member("a")) == [1, "ok", 0]
    assert cache.confirm("-") == [1, "ok", 1]


def test_an_entry_that_takes_the_place_of_another_counts_at_the_larger_until_it_ends(
    cache: CacheScripts,
) -> None:
    cache.admit("a", 500)
    assert cache.admit("a", 200) == [1, "ok"]
    assert cache.stats()["bytes"] == 500
    assert cache.admit("a", 700, ttl_ms=1) == [1, "ok"]
    assert cache.stats(NOW_MS + 1)["entries"] == 0

    assert cache.admit("b", 900, now_ms=NOW_MS + 5001) == [1, "ok"]
    assert cache.stats()["bytes"] == 900
    assert cache.stats()["expired"] == 1


def test_room_for_a_large_entry_is_made_in_steps(cache: CacheScripts) -> None:
    many = (1000, 100_000)
    for number in range(200):
        cache.admit(f"{number}", 500, most=many, now_ms=NOW_MS + number)

    first = cache.admit("large", 100_000, most=many, now_ms=NOW_MS + 200)
    second = cache.admit("large", 100_000, most=many, now_ms=NOW_MS + 200)

    assert first[:2] == [0, "full"]
    assert second[:2] == [1, "ok"]
    assert len(first[2:] + second[2:]) == 200
    assert cache.stats()["bytes"] == 100_000


@pytest.mark.parametrize(
    ("whose", "gone"),
    [
        (("-", "-"), {"a", "b", "c"}),
        (("app", "-"), {"a", "b"}),
        (("-", "p%2Fm"), {"a", "c"}),
        (("app", "p%2Fm"), {"a"}),
        (("nobody", "-"), set()),
    ],
)
def test_entries_of_a_client_or_of_a_model_are_removed(
    whose: tuple[str, str], gone: set[str], cache: CacheScripts
) -> None:
    cache.admit("a", whose=("app", "p%2Fm"))
    cache.admit("b", whose=("app", "p%2Fn"))
    cache.admit("c", whose=("other", "p%2Fm"))
    cache.touch(sums=(1, 2, 3, 4))

    assert cache.flush_all(*whose) == set(map(member, gone))

    stats = cache.stats()
    assert (stats["entries"], stats["bytes"]) == (3 - len(gone), 300 - 100 * len(gone))
    assert (stats["removed"], stats["doomed"]) == (len(gone), len(gone))
    assert (stats["hits"], stats["misses"]) == (1, 2)
    assert (stats["saved_prompt"], stats["saved_completion"]) == (3, 4)


@pytest.mark.parametrize("whose", [("-", "-"), ("app", "-"), ("-", "p%2Fm")])
def test_what_was_begun_before_a_flush_is_not_stored_after_it(
    whose: tuple[str, str], cache: CacheScripts
) -> None:
    cache.flush_all(*whose)

    assert cache.admit("a", begun_ms=NOW_MS) == [0, "flushed"]
    assert cache.admit("a", begun_ms=NOW_MS + 1) == [1, "ok"]
    other = cache.admit("b", begun_ms=NOW_MS, whose=("other", "p%2Fn"))
    assert other[1] == ("flushed" if whose == ("-", "-") else "ok")


def test_a_flush_by_a_clock_that_stepped_back_since_keeps_nothing_out(cache: CacheScripts) -> None:
    cache.flush_all("-", "-")
    near_ms, past_ms = NOW_MS - 5_000, NOW_MS - 5_001  # clocks of servers differ a little

    assert cache.admit("a", begun_ms=near_ms, now_ms=near_ms) == [0, "flushed"]
    assert cache.admit("a", begun_ms=past_ms, now_ms=past_ms) == [1, "ok"]


def test_an_index_that_a_server_has_lost_in_part_begins_anew(cache: CacheScripts) -> None:
    cache.admit("a", 900)
    cache.redis.delete(KEYS.cache_index()[0])

    assert cache.admit("b", 900) == [1, "ok"]
    assert cache.stats()["bytes"] == 900

    cache.redis.delete(RECORDS)
    assert cache.admit("c", 900) == [1, "ok"]
    assert cache.stats()["bytes"] == 900
    assert cache.admit("d", 900) == [1, "ok", member("b"), member("c")]


@pytest.mark.parametrize(
    ("name", "keys", "args"),
    [
        ("look", 1, ("1", "w", 1000, 0, NOW_MS)),
        ("look", 2, ("1", "w", 600_001, 0, NOW_MS)),
        ("renew", 2, ("w", 1, 600_001, 1, NOW_MS)),
        ("feed", 2, ("w", 1, 0, 1, NOW_MS)),
        ("feed", 2, ("w", 1, 0, 1, *"x" * 65, NOW_MS)),
        ("follow", 2, (1, 0, 65, NOW_MS)),
        ("publish", 2, ("w", 1, "two words", 1, "body", NOW_MS)),
        ("give_up", 1, ("w", 1, "")),
        ("admit", 4, ("no member", 1, 1, "c", "m", 0, 1, 1, NOW_MS)),
        ("admit", 4, ("c4:{x}", 1, 1, "two words", "m", 0, 1, 1, NOW_MS)),
        ("confirm", 2, ("no member",)),
        ("touch", 2, (0, 0, 0, 0, "c4:{x}", NOW_MS)),
        ("stats", 2, (NOW_MS,)),
        ("flush", 4, ("-", "-", "cursor", 1, NOW_MS)),
        ("flush", 4, ("-", "-", "0", 257, NOW_MS)),
    ],
)
def test_a_call_that_cannot_be_right_is_refused_before_anything_is_written(
    name: str, keys: int, args: tuple[str | int, ...], redis: Redis, scripts: Scripts
) -> None:
    script = redis.register_script(scripts[f"cache/{name}"].text)

    with pytest.raises(ResponseError, match="GW_BADARG"):
        script(keys=[f"gw1:{{x}}:{number}" for number in range(keys)], args=args)

    assert redis.keys() == []


def test_each_kind_of_server_does_the_same(each_server: Redis, scripts: Scripts) -> None:
    cache = CacheScripts(each_server, scripts)
    cache.look("w1")
    cache.look("w2")
    cache.feed("w1", NOW_MS, 0, "a")
    for number in range(60):
        cache.admit(f"{number}", most=(50, 100_000), now_ms=NOW_MS + number)
    cache.touch(("59", 0), sums=(1, 0, 0, 0), now_ms=NOW_MS + 60)

    assert cache.publish("w1", NOW_MS, "a") == [1, "ok"]
    assert cache.follow(NOW_MS) == [1, "over", 1, "kept", "a"]
    assert cache.look("w2")[1] == "found"
    assert cache.stats()["entries"] == 50
    assert {member(f"{number}") for number in range(10, 60)} <= cache.flush_all()
    assert cache.stats()["entries"] == 0
