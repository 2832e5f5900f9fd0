"""The cache on a cluster: entries on many nodes, one index, wake-ups from node to node."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from cluster_gw.store.cache_feed import Ended
from cluster_gw.store.cache_index import Bounds
from cluster_gw.store.cache_look import Following, Found, Lead
from cluster_gw.store.client import RedisClient
from cluster_gw.store.response_cache import ResponseCache
from cluster_gw.store.second_client import SecondClient
from tests.fakes.redis_masters import TwoMasters
from tests.fakes.redis_server import needed_redis
from tests.fakes.waiting import until_soon
from tests.store.caching import HEAD, cache_of, entry_of, read_out
from tests.store.clocks import RealClock

MOST = 6
BOUNDS = Bounds(max_entries=MOST, max_bytes=1_000_000, max_entry_bytes=10_000)
DIGESTS = [f"{number:064x}" for number in range(12)]


@pytest.fixture(scope="module")
def masters() -> Iterator[TwoMasters]:
    with TwoMasters(needed_redis()) as running:
        yield running


@pytest.fixture
async def caches(masters: TwoMasters) -> AsyncIterator[tuple[ResponseCache, ResponseCache]]:
    """Of two workers, the second of which has connections of its own for answers."""
    clients = [RedisClient(masters.url, prefix="gw1") for _ in range(2)]
    clients.append(SecondClient(masters.url, clients[1]))
    pair = []
    for client in clients[:2]:
        await client.start(5.0)
    for number, client in enumerate((clients[0], clients[2])):
        cache = cache_of(client, f"w{number}", RealClock(), bounds=lambda: BOUNDS)
        cache.start()
        await until_soon(cache._shared.is_heard)
        pair.append(cache)
    yield pair[0], pair[1]
    for cache in pair:
        await cache.close()
    for client in clients[::-1]:
        await client.close()


async def test_entries_on_all_nodes_are_counted_followed_and_removed(
    caches: tuple[ResponseCache, ResponseCache], masters: TwoMasters
) -> None:
    one, other = caches
    for digest in DIGESTS:
        lead = await one.look(digest)
        assert isinstance(lead, Lead)
        following = await other.look(digest)
        assert isinstance(following, Following)
        reading = asyncio.create_task(read_out(other.follow(following)))
        leading = one._leads[digest]
        await until_soon(lambda: leading.is_followed)  # noqa: B023 - waited for here
        one.feed(lead, HEAD)
        one.feed(lead, digest.encode())
        assert await one.publish(lead, entry_of(digest.encode()), ttl_s=60.0)
        assert await reading == (HEAD, digest.encode(), Ended())

    found = [await other.look(digest) for digest in DIGESTS]
    kept = [one.entry.payload.decode() for one in found if isinstance(one, Found)]
    nodes = [node.call("KEYS", "gw1:c4:*") for node in (masters.low, masters.high)]
    assert kept == DIGESTS[-MOST:]
    assert all(nodes)
    assert sum(map(len, nodes)) == MOST
    assert (await one.index.stats()).evicted == len(DIGESTS) - MOST

    assert await one.index.flush() == MOST
    assert [node.call("KEYS", "gw1:c4:*") for node in (masters.low, masters.high)] == [[], []]
