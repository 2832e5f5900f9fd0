"""What is stored takes no more of Redis than it may, whatever is asked for."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from cluster_gw.store.cache_codec import stored_bytes
from cluster_gw.store.cache_index import Bounds
from cluster_gw.store.cache_look import Lead
from cluster_gw.store.client import RedisClient
from cluster_gw.store.response_cache import ResponseCache
from tests.fakes.redis_server import RedisServer
from tests.store.caching import cache_of, entry_of
from tests.store.clocks import SharedClock

CAP_BYTES = 3_000_000
TIMES_THE_CAP = 10
SOME = 200
AT_ONCE = 20


@pytest.fixture
async def quiet(own_server: RedisServer) -> AsyncIterator[RedisClient]:
    """Connected to a server that nobody else uses, which knows the scripts."""
    client = RedisClient(own_server.url, prefix="gw1")
    await client.start(5.0)
    yield client
    await client.close()


async def data_bytes(client: RedisClient) -> int:
    """All that lies in a server and its tables, but for what its connections have in hand."""
    names = await client.call("KEYS", "*")
    each = [client.submit("MEMORY", "USAGE", name, "SAMPLES", 0) for name in names]
    stats = await client.call("MEMORY", "STATS")
    tables = dict(zip(stats[::2], stats[1::2], strict=True)).get(b"db.0", [])
    return int(sum(await asyncio.gather(*each)) + sum(tables[1::2]))


async def store(cache: ResponseCache, number: int, size: int) -> None:
    lead = await cache.look(f"{number:064x}")
    assert isinstance(lead, Lead)
    payload = random.Random(number).randbytes(size)
    assert await cache.publish(lead, entry_of(payload), ttl_s=3600.0)


async def test_an_entry_counts_for_what_it_takes(quiet: RedisClient) -> None:
    cache = cache_of(quiet, "w1", SharedClock(), bounds=lambda: BOUNDS)
    for number, size in enumerate((10, 1_000, 20_000)):
        before_bytes = await data_bytes(quiet)
        counted = (await cache.index.stats()).stored_bytes
        for first in range(0, SOME, AT_ONCE):
            await asyncio.gather(
                *(store(cache, number * SOME + first + one, size) for one in range(AT_ONCE))
            )
        took = (await data_bytes(quiet) - before_bytes) / SOME
        told = ((await cache.index.stats()).stored_bytes - counted) / SOME
        assert took <= told <= took + 700, size
    await cache.close()


async def test_memory_stays_below_the_cap_under_ten_times_as_much(quiet: RedisClient) -> None:
    bounds = Bounds(max_entries=5_000, max_bytes=CAP_BYTES, max_entry_bytes=1_000_000)
    cache = cache_of(quiet, "w1", SharedClock(), bounds=lambda: bounds)
    sizes = random.Random(1)
    asked, number, most = 0, 0, 0
    while asked < TIMES_THE_CAP * CAP_BYTES:
        some = [round(sizes.expovariate(1 / 40_000)) for _ in range(AT_ONCE)]
        await asyncio.gather(*(store(cache, number + at, size) for at, size in enumerate(some)))
        asked, number = asked + sum(some), number + AT_ONCE
        most = max(most, await data_bytes(quiet))
    stats = await cache.index.stats()
    await cache.close()

    assert most <= CAP_BYTES
    assert CAP_BYTES * 0.8 <= stats.stored_bytes <= CAP_BYTES
    assert stats.evicted >= number - stats.entries
    assert stats.doomed == 0


def test_sizes_are_rounded_up_as_an_allocator_does() -> None:
    sizes = [stored_bytes(size) - stored_bytes(0) for size in range(1, 100_000, 37)]

    assert all(size <= told for size, told in zip(range(1, 100_000, 37), sizes, strict=True))
    assert sizes == sorted(sizes)


BOUNDS = Bounds(max_entries=1_000_000, max_bytes=10**12, max_entry_bytes=1_000_000)
