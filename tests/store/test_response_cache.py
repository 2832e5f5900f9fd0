"""One answer for all who ask the same: found, led, followed, taken over, stored and refused."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from cluster_gw.store.cache_feed import Ended, Lost
from cluster_gw.store.cache_look import Following, Found, Lead, Unavailable
from cluster_gw.store.client import RedisClient
from cluster_gw.store.response_cache import ResponseCache
from cluster_gw.store.sealing import seal_of
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon
from tests.store.caching import BOUNDS, DIGEST, HEAD, OTHER, cache_of, entry_of, read_out
from tests.store.clocks import SharedClock

KEY = "ab" * 32


@pytest.fixture
def shared() -> SharedClock:
    return SharedClock()


@pytest.fixture
async def caches(
    client: RedisClient, shared: SharedClock
) -> AsyncIterator[tuple[ResponseCache, ResponseCache]]:
    """Of two workers, which hear each other."""
    pair = cache_of(client, "worker 1", shared), cache_of(client, "worker:2", shared)
    for cache in pair:
        cache.start()
        await until_soon(cache._shared.is_heard)
    yield pair
    for cache in pair:
        await cache.close()


async def lead_of(cache: ResponseCache, digest: str = DIGEST) -> Lead:
    lead = await cache.look(digest)
    assert isinstance(lead, Lead)
    return lead


async def test_what_one_worker_stored_is_found_by_another(
    caches: tuple[ResponseCache, ResponseCache], shared: SharedClock
) -> None:
    one, other = caches
    lead = await lead_of(one)

    assert await one.publish(lead, entry_of(), ttl_s=60.0)
    shared.pass_s(5.0)
    found = await other.look(DIGEST)

    assert found == Found(entry_of(), 5000)
    assert isinstance(await other.look(OTHER), Lead)
    assert one.counts == {"miss": 1, "stored": 1}
    assert other.counts == {"hit": 1, "miss": 1}


async def test_who_asks_meanwhile_reads_along_in_another_worker_and_in_the_same(
    caches: tuple[ResponseCache, ResponseCache],
) -> None:
    one, other = caches
    lead = await lead_of(one)
    one.feed(lead, HEAD)
    one.feed(lead, b"data: he")
    followers = [await cache.look(DIGEST) for cache in (one, one, other, other)]
    assert followers == [Following(DIGEST, lead.token)] * 4
    reading = [
        asyncio.create_task(read_out(cache.follow(Following(DIGEST, lead.token))))
        for cache in (one, one, other, other)
    ]
    await until_soon(lambda: bool(other._tails) and len(other._tails[DIGEST].pieces) == 2)

    one.feed(lead, b"llo\n\n")
    assert await one.publish(lead, entry_of(), ttl_s=60.0)

    assert await asyncio.gather(*reading) == [(HEAD, b"data: hello\n\n", Ended())] * 4
    assert isinstance(await other.look(DIGEST), Found)


async def test_nothing_of_an_answer_that_nobody_follows_lies_in_redis(
    caches: tuple[ResponseCache, ResponseCache], redis_server: RedisServer
) -> None:
    one, _ = caches
    lead = await lead_of(one)
    one.feed(lead, HEAD)
    one.feed(lead, b"data: hello\n\n")
    one.give_up(lead)
    await until_soon(lambda: not one._tasks)

    assert redis_server.command("KEYS", "gw1:c4*") == b"*0\r\n"


async def test_a_leader_that_gives_up_makes_way_at_once(
    caches: tuple[ResponseCache, ResponseCache],
) -> None:
    one, other = caches
    lead = await lead_of(one)
    following = await other.look(DIGEST)
    assert isinstance(following, Following)
    reading = asyncio.create_task(read_out(other.follow(following)))

    one.give_up(lead, "upstream")

    assert await reading == (None, b"", Lost("upstream"))
    again = await lead_of(other)
    assert again.token > lead.token


async def test_a_dead_leader_is_followed_for_less_than_a_second_and_then_fenced_off(
    caches: tuple[ResponseCache, ResponseCache], shared: SharedClock
) -> None:
    one, other = caches
    lead = await lead_of(one)
    one._leads[DIGEST].stop()  # it renews no more
    following = await other.look(DIGEST)
    assert following == Following(DIGEST, lead.token)
    reading = asyncio.create_task(read_out(other.follow(following)))
    shared.pass_s(0.8)

    _, _, end = await reading
    again = await lead_of(other)
    assert await other.publish(again, entry_of(b"new"), ttl_s=60.0)
    late = await one.publish(lead, entry_of(b"old"), ttl_s=60.0)
    found = await other.look(DIGEST)

    assert end == Lost("dead")
    assert not late
    assert isinstance(found, Found)
    assert found.entry.payload == b"new"


async def test_an_answer_that_is_not_kept_still_reaches_who_follows(
    caches: tuple[ResponseCache, ResponseCache],
) -> None:
    one, other = caches
    lead = await lead_of(one)
    following = await other.look(DIGEST)
    assert isinstance(following, Following)
    reading = asyncio.create_task(read_out(other.follow(following)))
    one.feed(lead, HEAD)
    one.feed(lead, b"cut")

    await one.finish(lead)

    assert await reading == (HEAD, b"cut", Ended())
    assert isinstance(await other.look(DIGEST), Lead)


async def test_an_entry_that_ends_soon_is_fetched_anew_by_one_of_those_who_find_it(
    client: RedisClient, shared: SharedClock
) -> None:
    rolls = [0.5, 0.5, 0.5, 0.49, 0.49, 0.49]
    cache = cache_of(client, "w", shared, draw=lambda: rolls.pop(0))
    lead = await lead_of(cache)
    assert await cache.publish(lead, entry_of(b"first"), ttl_s=100.0)
    shared.pass_s(95.0)

    none, refresh = await cache.look(DIGEST), await cache.look(DIGEST)
    assert isinstance(none, Found)
    assert none.refresh is None
    assert isinstance(refresh, Found)
    assert refresh.refresh is not None
    assert await cache.publish(refresh.refresh, entry_of(b"second"), ttl_s=100.0)

    found = await cache.look(DIGEST)
    await cache.close()
    assert isinstance(found, Found)
    assert (found.entry.payload, found.age_ms) == (b"second", 0)


@pytest.mark.parametrize("payload", [b"x" * 1_000_001, b"x" * 1_000_000, b""])
async def test_an_entry_has_a_bound(
    payload: bytes, caches: tuple[ResponseCache, ResponseCache]
) -> None:
    one, other = caches

    is_stored = await one.publish(await lead_of(one), entry_of(payload), ttl_s=60.0)

    assert is_stored == (len(payload) <= BOUNDS.max_entry_bytes)
    await until_soon(lambda: not one._tasks)
    assert isinstance(await other.look(DIGEST), Found if is_stored else Lead)


async def test_workers_with_different_keys_neither_read_each_other_nor_wait(
    client: RedisClient, shared: SharedClock
) -> None:
    plain = cache_of(client, "plain", shared)
    sealed = cache_of(client, "sealed", shared, seal=seal_of(KEY))
    lead = await lead_of(plain)

    assert await sealed.look(DIGEST) == Unavailable("alien")
    assert await plain.publish(lead, entry_of(b"plain"), ttl_s=60.0)
    assert await sealed.publish(await lead_of(sealed), entry_of(b"secret"), ttl_s=60.0)
    found = await sealed.look(DIGEST)
    assert isinstance(await plain.look(DIGEST), Lead)
    for cache in (plain, sealed):
        await cache.close()

    assert isinstance(found, Found)
    assert found.entry.payload == b"secret"


async def test_a_worker_that_ends_gives_up_what_comes_and_stores_what_has_come(
    client: RedisClient, shared: SharedClock
) -> None:
    ending, other = (cache_of(client, name, shared) for name in ("ending", "other"))
    whole, half = await lead_of(ending), await lead_of(ending, OTHER)
    ending.feed(half, b"")
    reading = asyncio.create_task(read_out(ending.follow(Following(OTHER, half.token))))
    storing = asyncio.create_task(ending.publish(whole, entry_of(), ttl_s=60.0))
    await asyncio.sleep(0)

    await ending.close()

    assert await storing
    assert await reading == (None, b"", Lost("closed"))
    assert isinstance(await other.look(DIGEST), Found)
    assert isinstance(await other.look(OTHER), Lead)
    await other.close()


async def test_a_publishing_that_is_cancelled_leaves_nothing_to_follow(
    client: RedisClient, shared: SharedClock
) -> None:
    cache = cache_of(client, "w", shared)
    storing = asyncio.create_task(cache.publish(await lead_of(cache), entry_of(), ttl_s=60.0))
    await asyncio.sleep(0)
    storing.cancel()
    await asyncio.wait([storing])

    assert not cache._tails
    assert not cache._leads
    await cache.close()


async def test_an_entry_that_cannot_be_written_frees_its_lead(
    client: RedisClient, shared: SharedClock
) -> None:
    cache = cache_of(client, "w", shared)
    entries = (
        msgspec.structs.replace(entry_of(), prompt_tokens=10**30),
        msgspec.structs.replace(entry_of(), finish="\ud800"),
    )

    for entry in entries:
        assert not await cache.publish(await lead_of(cache), entry, ttl_s=60.0)
        await until_soon(lambda: not cache._tasks)

    assert cache.counts == {"miss": 2, "not_stored_unwritable": 2}
    await cache.close()
