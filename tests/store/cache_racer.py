"""One of several workers that ask for the same answers at once; prints how often it led.

With the word `die` it leads, hands a piece on, says so and stops for good.
"""

import asyncio
import sys

from cluster_gw.store.cache_feed import Ended, Feed
from cluster_gw.store.cache_look import Following, Found, Lead
from cluster_gw.store.client import RedisClient
from cluster_gw.store.response_cache import ResponseCache
from tests.store.caching import DIGEST, HEAD, cache_of, entry_of
from tests.store.clocks import RealClock

PIECES = 5


async def whole(feed: Feed) -> bytes | None:
    """What a feed tells; None unless it is all of it."""
    parts, end = list[bytes](), None
    async for told in feed:
        if isinstance(told, bytes):
            parts.append(told)
        end = told
    return b"".join(parts) if isinstance(end, Ended) else None


async def fetch(cache: ResponseCache, lead: Lead, name: str) -> bytes:
    """Lead, in several turns of the loop."""
    pieces = [f"{name} {lead.token} {number};".encode() for number in range(PIECES)]
    cache.feed(lead, HEAD)
    for piece in pieces:
        cache.feed(lead, piece)
        await asyncio.sleep(0.002)
    await cache.publish(lead, entry_of(b"".join(pieces)), ttl_s=600.0)
    return b"".join(pieces)


async def ask(cache: ResponseCache, digest: str, name: str) -> tuple[bytes, bool]:
    """The answer, and whether this caller fetched it."""
    while True:
        match await cache.look(digest):
            case Found(entry):
                return entry.payload, False
            case Lead() as lead:
                return await fetch(cache, lead, name), True
            case Following() as following:
                answer = await whole(cache.follow(following))
                if answer is not None:
                    return answer, False
            case other:
                raise AssertionError(other)


async def race(url: str, name: str, attempts: int, digests: int) -> int:
    client = RedisClient(url, prefix="gw1", deadline_s=10.0)
    await client.start(10.0)
    cache, leads = cache_of(client, name, RealClock(), look_s=10.0), 0
    for number in range(digests):
        digest = f"{number:064x}"
        told = await asyncio.gather(*(ask(cache, digest, name) for _ in range(attempts)))
        assert len({answer for answer, _ in told}) == 1
        leads += sum(is_own for _, is_own in told)
    await cache.close()
    await client.close()
    return leads


async def die(url: str, name: str) -> None:
    client = RedisClient(url, prefix="gw1")
    await client.start(10.0)
    cache = cache_of(client, name, RealClock(), look_s=10.0)
    lead = await cache.look(DIGEST)
    assert isinstance(lead, Lead)
    cache.feed(lead, HEAD)
    cache.feed(lead, b"half")
    sys.stdout.write("leading\n")
    sys.stdout.flush()
    await asyncio.sleep(60)


if __name__ == "__main__":
    address, own_name, *numbers = sys.argv[1:]
    if numbers == ["die"]:
        asyncio.run(die(address, own_name))
    else:
        led = asyncio.run(race(address, own_name, int(numbers[0]), int(numbers[1])))
        sys.stdout.write(f"{led}\n")
