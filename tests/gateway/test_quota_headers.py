"""Limits learn from what providers say: others who use the same key, and limits set too high."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from cluster_gw.simulator.config import KeyLimits, SimulatorConfig
from cluster_gw.simulator.server import RunningSimulator, serve_simulator
from cluster_gw.telemetry import catalog
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import NO_RECORDS, chat, post
from tests.gateway.test_health import ONE_KEY

LIMIT = 20
SECRET = {"authorization": "Bearer secret-of-a1"}


@pytest.fixture
async def shared() -> AsyncIterator[RunningSimulator]:
    """A provider that counts: 20 requests a minute for the key, whoever uses it."""
    limits = KeyLimits(rpm=LIMIT, tpm=100_000)
    running = await serve_simulator(SimulatorConfig(keys={"secret-of-a1": limits}, any_model=True))
    yield running
    await running.close()


async def begin(start: Start, shared: RunningSimulator, **limits: int) -> Gateway:
    provider = {"a": {"dialect": "openai", "base_url": shared.base_url}}
    models = [{"provider": "a", "model": "one", "limits": limits}]
    return await start(providers=provider, keys=ONE_KEY, models=models, telemetry=NO_RECORDS)


async def use_outside(http: aiohttp.ClientSession, shared: RunningSimulator, count: int) -> None:
    """Somebody else uses the same key."""
    url = f"{shared.base_url}/chat/completions"
    for _ in range(count):
        async with http.post(url, json=chat(), headers=SECRET) as response:
            assert response.status == 200
            await response.read()


async def ask(http: aiohttp.ClientSession, gateway: Gateway, count: int) -> list[int]:
    statuses = []
    for _ in range(count):
        response, _ = await post(http, gateway.base_url, chat())
        statuses.append(response.status)
        await gateway.engine.quotas.settle()
    return statuses


def refused_by_provider(shared: RunningSimulator) -> int:
    stats: dict[str, Any] = shared.provider.stats()
    return int(stats["totals"]["rejected"])


async def test_outside_use_of_a_key_is_kept_room_for_and_noticed(
    start: Start, http: aiohttp.ClientSession, shared: RunningSimulator
) -> None:
    gateway = await begin(start, shared, rpm=LIMIT)
    await use_outside(http, shared, 10)

    statuses = await ask(http, gateway, 15)

    assert statuses.count(200) in {9, 10}  # one may have been on its way when the provider counted
    assert statuses.count(429) == 15 - statuses.count(200)
    assert refused_by_provider(shared) == 0
    assert gateway.registry.value(catalog.OUTSIDE_USE, "a", "requests") == 10
    told = [event for event in gateway.events() if event["event"] == "quota.shared"]
    assert [(one["key"], one["model"], one["amount"]) for one in told] == [("a1", "one", 10)]


async def test_limit_that_was_configured_too_high_is_not_run_into(
    start: Start, http: aiohttp.ClientSession, shared: RunningSimulator
) -> None:
    gateway = await begin(start, shared, rpm=500)

    statuses = await ask(http, gateway, LIMIT + 5)

    assert statuses.count(200) in {LIMIT - 1, LIMIT}
    assert refused_by_provider(shared) == 0
    (told,) = [event for event in gateway.events() if event["event"] == "quota.lower"]
    assert (told["limit"], told["configured"]) == (LIMIT, 500)
    assert gateway.registry.value(catalog.OUTSIDE_USE, "a", "requests") == 0


async def test_headers_that_say_nothing_new_are_not_sent(
    start: Start, http: aiohttp.ClientSession, shared: RunningSimulator
) -> None:
    gateway = await begin(start, shared, rpm=LIMIT)
    await ask(http, gateway, 2)
    await gateway.engine.settle()
    before = gateway.engine.redis.calls

    statuses = await ask(http, gateway, 10)
    await gateway.engine.settle()

    assert statuses == [200] * 10
    assert gateway.engine.redis.calls - before <= 2 * 10 + 2  # statistics go once a second


async def test_provider_that_says_it_has_more_loosens_nothing(
    start: Start, http: aiohttp.ClientSession, shared: RunningSimulator
) -> None:
    gateway = await begin(start, shared, rpm=5)

    statuses = await ask(http, gateway, 8)

    assert statuses == [200] * 5 + [429] * 3


async def test_key_without_a_limit_of_ours_rests_once_its_provider_has_nothing_left(
    start: Start, http: aiohttp.ClientSession, shared: RunningSimulator
) -> None:
    gateway = await begin(start, shared)
    await use_outside(http, shared, LIMIT - 1)

    statuses = await ask(http, gateway, 3)

    assert statuses == [200, 429, 429]
    assert refused_by_provider(shared) == 0
