"""A client's own limits while Redis is frozen and nothing may be let in: nothing stays held."""

import asyncio
import json
from collections.abc import AsyncIterator
from hashlib import sha256

import aiohttp
import pytest

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway, provider
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.gateway.requests import chat, post
from tests.lua.window_fields import present

KEY = "sk-client"
AUTH = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture
def server() -> RedisServer:
    binary = needed_redis()
    return RedisServer(binary)


@pytest.fixture
async def gateway(server: RedisServer, simulator: RunningSimulator) -> AsyncIterator[Gateway]:
    """A worker on a Redis of its own, with one client that has limits."""
    digest = sha256(KEY.encode()).hexdigest()
    config = {
        "providers": {"a": provider(simulator.base_url)},
        "keys": [{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
        "models": [{"provider": "a", "model": "one"}],
        "combos": [{"id": "auto", "family": "classic", "members": "all"}],
        "default_combo": "auto",
        "clients": [{"id": "app", "key_sha256": digest, "limits": {"rpm": 9, "concurrency": 1}}],
    }
    with server:
        async with Gateway(config, server.url, when_lost="closed") as running:
            yield running


async def held(gateway: Gateway) -> tuple[int, int]:
    """Requests of the minute and holds in flight, once everything is settled."""
    assert await gateway.engine.settle() == 0
    text = await gateway.engine.redis.call("HGET", "gw1:c:{app}", "now")
    now = present({"now": text.decode()})
    return now["rs"], now["i"]


async def back(gateway: Gateway) -> None:
    async with asyncio.timeout(5):
        while gateway.engine.is_alone:  # noqa: ASYNC110 - a test may look
            await asyncio.sleep(0.01)


async def test_a_frozen_redis_is_a_503_and_leaves_nothing_held(
    server: RedisServer, gateway: Gateway, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    assert (await post(http, gateway.base_url, chat(), **AUTH))[0].status == 200
    server.freeze()

    response, body = await post(http, gateway.base_url, chat(), **AUTH)
    server.thaw()

    assert (response.status, json.loads(body)["error"]["code"]) == (503, "redis_lost")
    await back(gateway)
    assert await held(gateway) == (1, 0)
    assert (await post(http, gateway.base_url, chat(), **AUTH))[0].status == 200
    assert simulator.stats()["totals"]["requests"] == 2


async def test_a_client_that_leaves_while_redis_is_frozen_leaves_nothing_held(
    server: RedisServer, gateway: Gateway, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    assert (await post(http, gateway.base_url, chat(), **AUTH))[0].status == 200
    server.freeze()

    asking = asyncio.create_task(post(http, gateway.base_url, chat(), **AUTH))
    await asyncio.sleep(0.1)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await asyncio.sleep(0.1)
    server.thaw()

    await back(gateway)
    assert await held(gateway) == (1, 0)
    assert simulator.stats()["totals"]["requests"] == 1
