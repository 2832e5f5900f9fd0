"""Whatever is wrong with the cache's Redis or with what stands there, requests go on without it."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from cluster_gw.store.cache_feed import Ended, FeedCodec, Lost
from cluster_gw.store.cache_index import Admitted, Bounds, Counted
from cluster_gw.store.cache_lead import LONGEST_S as LONGEST_LEAD_S
from cluster_gw.store.cache_lead import QUIET_RENEW_S
from cluster_gw.store.cache_look import Following, Found, Lead, Unavailable
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.response_cache import LOOK_S, ResponseCache
from cluster_gw.store.sealing import seal_of
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon
from tests.store.caching import DIGEST, HEAD, OTHER, cache_of, entry_of, read_out
from tests.store.clocks import NOW_MS, SharedClock

KEYS = Keys("gw1")
ENTRY, LEAD = KEYS.cached(DIGEST), KEYS.cache_lead(DIGEST)
LONGEST_S = 0.5  # the machine has other work; a call to this server would wait 0.7 s
SECRET = "ab" * 32


@pytest.fixture
def shared() -> SharedClock:
    return SharedClock()


@pytest.fixture
async def cache(client: RedisClient, shared: SharedClock) -> AsyncIterator[ResponseCache]:
    cache = cache_of(client, "w1", shared)
    yield cache
    await cache.close()


async def lead_of(cache: ResponseCache, digest: str = DIGEST) -> Lead:
    lead = await cache.look(digest)
    assert isinstance(lead, Lead)
    return lead


async def test_without_a_server_nothing_waits(shared: SharedClock) -> None:
    client = RedisClient("redis://127.0.0.1:1/0", prefix="gw1")
    cache = cache_of(client, "w1", shared)
    started_s = time.perf_counter()

    assert await cache.look(DIGEST) == Unavailable("lost")
    assert await cache.look(DIGEST) == Unavailable("resting")
    took_s = time.perf_counter() - started_s
    for rest_s in (0.1, 0.2, 0.4, 0.8, 1.0, 1.0):
        shared.pass_s(rest_s - 0.01)
        assert await cache.look(DIGEST) == Unavailable("resting")
        shared.pass_s(0.02)
        assert await cache.look(DIGEST) == Unavailable("lost")
    await cache.close()
    await client.close()

    assert took_s < LONGEST_S


async def test_a_frozen_server_holds_up_one_lookup_and_its_late_lead_is_given_back(
    own_server: RedisServer, shared: SharedClock
) -> None:
    client = RedisClient(own_server.url, prefix="gw1")
    await client.start(5.0)
    cache = cache_of(client, "w1", shared, look_s=LOOK_S)
    await asyncio.gather(*client.load(cache._place.scripts["cache/look"]))
    own_server.freeze()
    started_s = time.perf_counter()
    try:
        first = await cache.look(DIGEST)
        took_s = time.perf_counter() - started_s
        second = await cache.look(DIGEST)
    finally:
        own_server.thaw()
    await until_soon(lambda: not client.pending and not cache._tasks)
    shared.pass_s(1.0)
    cache._look_s = 5.0

    again = await cache.look(DIGEST)
    await cache.close()
    await client.close()

    assert (first, second) == (Unavailable("slow"), Unavailable("resting"))
    assert took_s < LONGEST_S
    assert again == Lead(DIGEST, NOW_MS + 1000)


async def test_a_lead_whose_request_has_gone_away_is_given_back(
    cache: ResponseCache, client: RedisClient
) -> None:
    looking = asyncio.create_task(cache.look(DIGEST))
    await asyncio.sleep(0)
    looking.cancel()
    await until_soon(lambda: not client.pending and not cache._tasks)

    assert isinstance(await cache.look(DIGEST), Lead)


async def test_a_full_server_is_done_without(own_server: RedisServer, shared: SharedClock) -> None:
    client = RedisClient(own_server.url, prefix="gw1")
    await client.start(5.0)
    cache = cache_of(client, "w1", shared)
    lead = await lead_of(cache)
    own_server.command("CONFIG", "SET", "maxmemory", "1")

    is_stored = await cache.publish(lead, entry_of(), ttl_s=60.0)
    looked = await cache.look(OTHER)
    await cache.close()
    await client.close()

    assert not is_stored
    assert looked == Unavailable("refused")
    assert cache.counts == {"miss": 1, "not_stored_lost": 1, "refused": 1}


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("SET", ENTRY, "garbage"), ENTRY),
        (("HSET", ENTRY, "a", "b"), ENTRY),
        (("SET", LEAD, "garbage"), LEAD),
        (("HSET", LEAD, "token", "x"), LEAD),
    ],
)
async def test_what_is_not_ours_is_told_of_and_fetched_anew(
    words: tuple[str, ...],
    name: str,
    cache: ResponseCache,
    client: RedisClient,
    redis_server: RedisServer,
) -> None:
    told: list[str] = []
    client.unreadable.listen(told.extend)
    redis_server.command(*words)

    assert await cache.look(DIGEST) == Unavailable("unreadable")
    assert name in told
    assert isinstance(await cache.look(OTHER), Lead)  # and slows nothing
    await until_soon(lambda: not cache._tasks)
    assert isinstance(await cache.look(DIGEST), Lead)


@pytest.mark.parametrize("sealed_by", [None, SECRET])
async def test_a_damaged_answer_is_told_of_and_fetched_anew(
    sealed_by: str | None, client: RedisClient, redis_server: RedisServer, shared: SharedClock
) -> None:
    cache = cache_of(client, "w1", shared, seal=seal_of(sealed_by))
    told: list[str] = []
    client.unreadable.listen(told.extend)
    assert await cache.publish(await lead_of(cache), entry_of(), ttl_s=60.0)
    redis_server.command("SETRANGE", ENTRY, "60", "damaged")

    assert await cache.look(DIGEST) == Unavailable("unreadable")
    assert told == [ENTRY]
    await until_soon(lambda: not cache._tasks)
    assert isinstance(await cache.look(DIGEST), Lead)
    await cache.close()


async def test_an_answer_of_another_version_is_none(
    cache: ResponseCache, redis_server: RedisServer
) -> None:
    redis_server.command("SET", ENTRY, f"9 {NOW_MS} {NOW_MS + 60_000}\nbody", "PX", "60000")

    assert await cache.publish(await lead_of(cache), entry_of(b"ours"), ttl_s=60.0)

    found = await cache.look(DIGEST)
    assert isinstance(found, Found)
    assert found.entry.payload == b"ours"


async def test_an_answer_moved_to_another_request_cannot_be_read(
    client: RedisClient, redis_server: RedisServer, shared: SharedClock
) -> None:
    cache = cache_of(client, "w1", shared, seal=seal_of(SECRET))
    assert await cache.publish(await lead_of(cache), entry_of(), ttl_s=60.0)
    redis_server.command("COPY", ENTRY, KEYS.cached(OTHER))

    assert b"hello" not in redis_server.command("GET", ENTRY)
    assert await cache.look(OTHER) == Unavailable("unreadable")
    await cache.close()


async def test_scripts_that_a_server_has_forgotten_are_loaded_in_time(
    cache: ResponseCache, redis_server: RedisServer
) -> None:
    redis_server.command("SCRIPT", "FLUSH")

    lead = await lead_of(cache)
    redis_server.command("SCRIPT", "FLUSH")

    assert await cache.publish(lead, entry_of(), ttl_s=60.0)


async def test_an_index_that_cannot_be_read_stores_nothing_and_frees_the_lead(
    cache: ResponseCache, redis_server: RedisServer
) -> None:
    redis_server.command("SET", KEYS.cache_index()[1], "garbage")
    lead = await lead_of(cache)

    assert not await cache.publish(lead, entry_of(), ttl_s=60.0)

    await until_soon(lambda: not cache._tasks)
    assert redis_server.command("EXISTS", ENTRY, LEAD) == b":0\r\n"


async def test_followers_of_a_server_that_is_lost_are_told_so(
    own_server: RedisServer, shared: SharedClock
) -> None:
    client = RedisClient(own_server.url, prefix="gw1")
    await client.start(5.0)
    cache = cache_of(client, "w2", shared)
    feed = cache.follow(Following(DIGEST, 1))
    own_server.kill()

    head, read, end = await read_out(feed)
    await cache.close()
    await client.close()

    assert (head, read) == (None, b"")
    assert end in (Lost("redis"), Lost("dead"))


async def test_pieces_that_are_not_ours_end_a_feed(
    client: RedisClient, redis_server: RedisServer, shared: SharedClock
) -> None:
    cache = cache_of(client, "w2", shared)
    sealed = FeedCodec(seal_of(SECRET), KEYS.cache_feed(DIGEST, 1))
    for token, piece in ((1, sealed.encode(0, b"x")), (2, b"garbage"), (3, b"hgarbage")):
        name = KEYS.cache_feed(DIGEST, token)
        await client.call("RPUSH", name, piece)
        assert await read_out(cache.follow(Following(DIGEST, token))) == (
            *(None, b""),
            Lost("unreadable"),
        )
        await until_soon(lambda: not cache._tasks)
    await cache.close()


async def test_a_leader_that_was_overtaken_still_feeds_those_who_follow_here(
    cache: ResponseCache, client: RedisClient, redis_server: RedisServer
) -> None:
    lead = await lead_of(cache)
    reading = asyncio.create_task(read_out(cache.follow(Following(DIGEST, lead.token))))
    redis_server.command("DEL", LEAD)
    cache._leads[DIGEST].follow()
    cache.feed(lead, HEAD)
    await until_soon(lambda: cache._leads[DIGEST].is_stale)
    cache._beat()  # which changes nothing any more
    cache.feed(lead, b"all of it")

    is_stored = await cache.publish(lead, entry_of(b"all of it"), ttl_s=60.0)

    assert not is_stored
    assert await reading == (HEAD, b"all of it", Ended())
    assert cache.counts["not_stored_stale"] == 1


@pytest.mark.parametrize(("is_read", "most_bytes"), [(False, 1_000_000), (True, 4_000_000)])
async def test_an_answer_that_is_too_large_is_given_up_while_it_comes(
    is_read: bool, most_bytes: int, client: RedisClient, shared: SharedClock
) -> None:
    bounds = Bounds(max_entries=100, max_bytes=64_000_000, max_entry_bytes=1_000_000)
    cache = cache_of(client, "w1", shared, bounds=lambda: bounds)
    lead = await lead_of(cache)
    feed = cache.follow(Following(DIGEST, lead.token))
    if not is_read:
        feed.close()
    half = b"x" * (most_bytes // 2)
    cache.feed(lead, half)
    cache.feed(lead, half)
    assert isinstance(await cache.look(DIGEST), Following)
    cache.feed(lead, b"x")

    if is_read:
        _, read, end = await read_out(feed)
        assert (len(read), end) == (most_bytes, Lost("too_large"))
    await asyncio.sleep(0)  # whoever asks does so in a task of its own
    assert not await cache.publish(lead, entry_of(), ttl_s=60.0)
    assert isinstance(await cache.look(DIGEST), Lead)
    await cache.close()


async def test_who_called_before_the_lead_was_known_is_heard(
    cache: ResponseCache, client: RedisClient, shared: SharedClock
) -> None:
    other = cache_of(client, "w2", shared)
    looking = [asyncio.create_task(one.look(DIGEST)) for one in (cache, other)]
    cache._hear(f"follow {DIGEST}".encode())
    lead, following = await asyncio.gather(*looking)
    assert isinstance(lead, Lead)
    assert isinstance(following, Following)

    assert cache._leads[DIGEST].is_followed
    await other.close()


async def test_a_refresh_keeps_nobody_from_what_is_there(
    client: RedisClient, shared: SharedClock
) -> None:
    cache = cache_of(client, "w1", shared, draw=lambda: 0.0)
    assert await cache.publish(await lead_of(cache), entry_of(b"old"), ttl_s=100.0)
    shared.pass_s(85.0)
    found = await cache.look(DIGEST)
    assert isinstance(found, Found)
    assert found.refresh is not None

    again = await cache.look(DIGEST)
    feed = cache.follow(Following(DIGEST, found.refresh.token))
    cache.feed(found.refresh, b"new")
    await cache.finish(found.refresh)

    assert isinstance(again, Found)
    assert again.refresh is None
    assert await read_out(feed) == (None, b"new", Ended())
    await cache.close()


async def test_a_follower_that_leaves_ends_its_reading(
    cache: ResponseCache, client: RedisClient, shared: SharedClock
) -> None:
    other = cache_of(client, "w2", shared)
    lead = await lead_of(cache)
    following = await other.look(DIGEST)
    assert isinstance(following, Following)
    feed, second = other.follow(following), other.follow(following)

    feed.close()
    cache.feed(lead, b"a")
    cache._leads[DIGEST].follow()
    assert await anext(second) == b"a"
    second.close()
    second.close()

    await until_soon(lambda: not other._tails)
    with pytest.raises(StopAsyncIteration):
        await anext(second)
    await other.close()


async def test_what_was_used_is_booked_when_a_worker_ends(
    client: RedisClient, shared: SharedClock
) -> None:
    cache = cache_of(client, "w1", shared)
    assert await cache.publish(await lead_of(cache), entry_of(), ttl_s=60.0)
    cache.touch(DIGEST, 7, 3)
    cache.touch(DIGEST, 10**30, -5)
    await cache.close()

    stats = await cache.index.stats()
    assert (stats.entries, stats.hits, stats.misses) == (1, 2, 1)
    assert (stats.saved_prompt_tokens, stats.saved_completion_tokens) == (10**9 + 7, 3)


async def test_entries_are_removed_by_client_by_model_and_all(
    cache: ResponseCache, client: RedisClient, redis_server: RedisServer
) -> None:
    for number, (whose, model) in enumerate((("a", "m"), ("-", "m"), ("a", "n/1"), ("b", ""))):
        digest = f"{number:064x}"
        lead = await lead_of(cache, digest)
        entry = entry_of(client=whose, model=model)
        assert await cache.publish(lead, entry, ttl_s=60.0)

    assert await cache.index.flush(client="-") == 1
    assert await cache.index.flush(model="p/n/1") == 1
    assert redis_server.command("KEYS", "gw1:c4:*")[:2] == b"*2"
    assert await cache.index.flush(client="a", model="p/n/1") == 0
    await client.call("ZADD", KEYS.cache_index()[3], 1, "c4:{left}")
    redis_server.command("SET", KEYS.of_member("c4:{left}"), "by one that died")
    assert await cache.index.flush() == 2
    assert redis_server.command("KEYS", "gw1:c4:*") == b"*0\r\n"
    stats = await cache.index.stats()
    assert (stats.entries, stats.stored_bytes, stats.doomed, stats.removed) == (0, 0, 0, 4)


async def test_a_lead_is_renewed_until_its_answer_is_stored_and_a_forgotten_one_is_not(
    cache: ResponseCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead, other = await lead_of(cache), await lead_of(cache, OTHER)
    ended, forgotten = cache._leads[DIGEST], cache._leads[OTHER]
    reading = asyncio.create_task(read_out(cache.follow(Following(OTHER, other.token))))
    await ended.end()
    monkeypatch.setattr(forgotten, "_begun_s", forgotten._begun_s - LONGEST_LEAD_S - 1)
    long_ago_s = ended._renewed_s - QUIET_RENEW_S
    monkeypatch.setattr(ended, "_renewed_s", long_ago_s)

    cache._beat()

    await until_soon(lambda: not cache._tasks)
    assert ended._renewed_s > long_ago_s
    assert forgotten.is_over
    assert await reading == (None, b"", Lost("forgotten"))
    assert not ended.is_stale
    assert await cache.publish(lead, entry_of(), ttl_s=60.0)


async def test_what_was_written_after_all_is_deleted_once_somebody_stores_again(
    own_server: RedisServer, shared: SharedClock
) -> None:
    client = RedisClient(own_server.url, prefix="gw1", deadline_s=0.5)
    await client.start(5.0)
    cache = cache_of(client, "w1", shared)
    await asyncio.gather(*client.load(cache._place.scripts["cache/publish"]))
    lead = await lead_of(cache)
    admit = cache.index.admit

    async def admit_and_freeze(entry: Counted, bounds: Bounds) -> Admitted:
        told = await admit(entry, bounds)
        own_server.freeze()
        return told

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache.index, "admit", admit_and_freeze)
        is_stored = await cache.publish(lead, entry_of(), ttl_s=60.0)
    own_server.thaw()
    await until_soon(lambda: own_server.command("EXISTS", ENTRY) == b":1\r\n")
    own_server.command("DEL", *KEYS.cache_index())
    await until_soon(lambda: client.is_up and not client.pending and not cache._tasks)

    shared.pass_s(5.0)
    assert await cache.publish(await lead_of(cache, OTHER), entry_of(), ttl_s=60.0)

    assert not is_stored
    assert own_server.command("EXISTS", ENTRY, KEYS.cached(OTHER)) == b":1\r\n"
    await cache.close()
    await client.close()
