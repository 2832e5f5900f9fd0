"""Whatever becomes of the Redis of the cache: every request is answered, and at once."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import pytest

from cluster_gw.telemetry import catalog
from tests.fakes.gateway import Gateway
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.fakes.stepped_upstream import SteppedUpstream
from tests.fakes.waiting import until_soon
from tests.gateway.requests import chat, post

NOWHERE: Final = "redis://127.0.0.1:9"
LONGEST_S: Final = 1.0  # the machine has other work; alone it is 0.06
NONSENSE: Final = (b"$-7\r\n!\r\n", b"+OK\r\n", b"*2\r\n:1\r\n", b"\x00\xff" * 40)


@pytest.fixture
async def upstream() -> AsyncIterator[SteppedUpstream]:
    async with SteppedUpstream() as running:
        yield running


@pytest.fixture
def cache() -> Iterator[RedisServer]:
    """A Redis that a test may freeze and fill."""
    with RedisServer(needed_redis()) as running:
        yield running


def config(upstream: SteppedUpstream) -> dict[str, Any]:
    return {
        "providers": {"p": {"dialect": "openai", "base_url": upstream.base_url}},
        "keys": [{"id": "p1", "provider": "p", "secret": "secret-of-p1"}],
        "models": [{"provider": "p", "model": "m"}],
        "cache": {"enabled": True},
    }


@asynccontextmanager
async def talking_nonsense(words: bytes) -> AsyncIterator[str]:
    """A server that answers every command with the same words."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65_536):
            writer.write(words)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def served(
    http: aiohttp.ClientSession, gateway: Gateway, upstream: SteppedUpstream
) -> list[str]:
    """What the cache was to five requests of one meaning; all are answered, and at once."""
    found, before = [], upstream.calls
    for number in range(5):
        began_s = time.monotonic()
        response, body = await post(http, gateway.base_url, chat(stream=bool(number % 2)))
        assert time.monotonic() - began_s < LONGEST_S
        assert (response.status, b"there" in body) == (200, True)
        found.append(response.headers["x-gw-cache"])
    assert upstream.calls - before == sum(one in {"OFF", "MISS"} for one in found)
    return found


async def is_up(gateway: Gateway) -> None:
    def holds() -> bool:
        gateway.registry.snapshot()
        return gateway.registry.value(catalog.CACHE_REDIS_UP) == 1

    await until_soon(holds)


async def test_a_server_that_is_away_is_missed_by_nobody(
    upstream: SteppedUpstream, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    async with Gateway(config(upstream), server.url, prefix="ca", cache_url=NOWHERE) as gateway:
        assert await served(http, gateway, upstream) == ["OFF"] * 5
        counted = gateway.registry.value(catalog.CACHE_REQUESTS, "unavailable")

    assert counted == 5


async def test_a_server_that_says_nothing_holds_up_one_request_and_then_none(
    upstream: SteppedUpstream, server: RedisServer, cache: RedisServer, http: aiohttp.ClientSession
) -> None:
    async with Gateway(config(upstream), server.url, prefix="cs", cache_url=cache.url) as gateway:
        await is_up(gateway)
        cache.freeze()
        found = await served(http, gateway, upstream)
        cache.thaw()

    assert found == ["OFF"] * 5


async def test_a_server_that_is_full_keeps_nothing(
    upstream: SteppedUpstream, server: RedisServer, cache: RedisServer, http: aiohttp.ClientSession
) -> None:
    async with Gateway(config(upstream), server.url, prefix="cf", cache_url=cache.url) as gateway:
        await is_up(gateway)
        cache.command("CONFIG", "SET", "maxmemory", "1")
        found = await served(http, gateway, upstream)

    assert found == ["OFF"] * 5


@pytest.mark.parametrize("words", NONSENSE)
async def test_a_server_that_talks_nonsense_is_not_believed(
    words: bytes, upstream: SteppedUpstream, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    async with (
        talking_nonsense(words) as url,
        Gateway(config(upstream), server.url, prefix="cn", cache_url=url) as gateway,
    ):
        assert await served(http, gateway, upstream) == ["OFF"] * 5


async def test_what_somebody_else_wrote_there_is_not_given_to_anybody(
    upstream: SteppedUpstream, server: RedisServer, cache: RedisServer, http: aiohttp.ClientSession
) -> None:
    async with Gateway(config(upstream), server.url, prefix="cw", cache_url=cache.url) as gateway:
        await post(http, gateway.base_url, chat())
        await until_soon(lambda: names(cache, "cw:c4:*") != [])
        for name in names(cache, "cw:c4*"):
            cache.command("DEL", name)
            cache.command("LPUSH", name, "nonsense")

        found = await served(http, gateway, upstream)

    assert found[0] == "OFF"


def names(cache: RedisServer, pattern: str) -> list[str]:
    reply = cache.command("KEYS", pattern).decode().split("\r\n")
    return [line for line in reply if line and line[0] not in "*$"]
