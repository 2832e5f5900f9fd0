"""One worker whose Redis is gone: what clients, the log and the metrics say."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.telemetry import catalog
from cluster_gw.telemetry.metric import Metric
from tests.fakes.gateway import Gateway, provider
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon
from tests.gateway.requests import chat, post

RPM = 9  # after one request eight are left, and half of them are this worker's


@pytest.fixture
def server(durable_server: RedisServer) -> RedisServer:
    return durable_server


@pytest.fixture
async def gateway(server: RedisServer, simulator: RunningSimulator) -> AsyncIterator[Gateway]:
    config = {
        "providers": {"a": provider(simulator.base_url)},
        "keys": [{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
        "models": [{"provider": "a", "model": "one", "limits": {"rpm": RPM}}],
        "combos": [{"id": "auto", "family": "classic", "members": "all"}],
        "default_combo": "auto",
    }
    async with Gateway(config, server.url) as running:
        yield running


async def lose(gateway: Gateway, server: RedisServer) -> None:
    server.kill()
    await until_soon(lambda: gateway.engine.is_alone and not gateway.engine.is_redis_used)
    await until_soon(lambda: bool(said(gateway, "alone.begun")))


async def regain(gateway: Gateway, server: RedisServer) -> None:
    server.start()
    await until_soon(lambda: not gateway.engine.is_alone)
    assert await gateway.engine.settle() == 0


def said(gateway: Gateway, name: str) -> list[dict[str, Any]]:
    return [line for line in gateway.events() if line["event"] == name]


def value(gateway: Gateway, metric: Metric) -> float:
    families = {family.name: family for family in gateway.registry.snapshot().families}
    return sum(sample.value for sample in families[metric.name].samples)


async def test_what_the_cache_saved_is_told_at_the_end_if_redis_comes_back_in_time(
    gateway: Gateway, server: RedisServer
) -> None:
    await lose(gateway, server)
    gateway.engine._admissions.usage.save("app", "a/one", prompt_tokens=30, completion_tokens=12)

    ending = asyncio.create_task(gateway.engine.settle())
    server.start()
    await ending

    async with gateway.admin() as admin:
        told = (await admin.get("/api/usage")).json()["total"]
    assert (told["cache_hits"], told["saved_prompt_tokens"]) == (1, 30)
    assert said(gateway, "usage.lost") == []


async def test_what_the_cache_saved_is_named_at_the_end_if_nobody_hears_of_it(
    gateway: Gateway, server: RedisServer
) -> None:
    await lose(gateway, server)
    gateway.engine._admissions.usage.save("app", "a/one", prompt_tokens=30, completion_tokens=12)

    await gateway.engine.usage.end(0.0)

    (line,) = said(gateway, "usage.lost")
    assert (line["worker"], line["answers"], line["tokens"]) == ("w1", 1, 42)
    assert value(gateway, catalog.USAGE_DROPPED) == 1


async def test_every_answer_says_that_redis_is_away(
    gateway: Gateway, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    before, _ = await post(http, gateway.base_url, chat())
    await lose(gateway, server)

    whole, _ = await post(http, gateway.base_url, chat())
    stream, last = await post(http, gateway.base_url, chat(stream=True))

    assert "X-Gw-Degraded" not in before.headers
    assert (whole.status, whole.headers["X-Gw-Degraded"]) == (200, "redis")
    assert (stream.status, stream.headers["X-Gw-Degraded"]) == (200, "redis")
    assert last.endswith(b"data: [DONE]\n\n")


async def test_spent_share_is_a_429_that_says_so(
    gateway: Gateway, server: RedisServer, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    await post(http, gateway.base_url, chat())
    await lose(gateway, server)

    answers = [await post(http, gateway.base_url, chat()) for _ in range(6)]

    assert [response.status for response, _ in answers] == [200] * 4 + [429] * 2
    refused, body = answers[-1]
    error = json.loads(body)["error"]
    assert error["code"] == "rate_limit_exceeded"
    assert [one["code"] for one in error["skipped"]] == ["rpm"]
    assert refused.headers["X-Gw-Degraded"] == "redis"
    assert refused.headers["Retry-After"] == "1"
    assert simulator.stats()["totals"]["requests"] == 5


async def test_beginning_and_end_are_said_once(
    gateway: Gateway, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    await post(http, gateway.base_url, chat())
    await lose(gateway, server)
    for _ in range(6):
        await post(http, gateway.base_url, chat())
    await gateway.engine._standby.remind()
    await regain(gateway, server)
    await gateway.engine._standby.remind()

    (begun,) = said(gateway, "alone.begun")
    (continued,) = said(gateway, "alone.continued")
    (ended,) = said(gateway, "alone.ended")
    assert begun["mode"] == "share"
    assert begun["cause"]
    assert (continued["grants"], continued["refusals"], continued["journal"]) == (4, 2, 4)
    assert (ended["grants"], ended["refusals"], ended["replayed"]) == (4, 2, 4)


async def test_metrics_follow(
    gateway: Gateway, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    await post(http, gateway.base_url, chat())
    await lose(gateway, server)
    for _ in range(6):
        await post(http, gateway.base_url, chat())

    during = [value(gateway, one) for one in (catalog.ALONE, catalog.JOURNAL)]
    await regain(gateway, server)

    assert during == [1, 4]
    assert [value(gateway, one) for one in (catalog.ALONE, catalog.JOURNAL)] == [0, 0]
    assert value(gateway, catalog.ALONE_GRANTS) == 4
    assert value(gateway, catalog.ALONE_REFUSALS) == 2
    assert value(gateway, catalog.JOURNAL_REPLAYED) == 4
