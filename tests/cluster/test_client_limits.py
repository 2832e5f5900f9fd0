"""A client's own limits hold over three worker processes, exactly."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

import aiohttp
import pytest
from redis import Redis

from tests.cluster.load import Outcomes, spread
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import texts
from tests.lua.window_fields import present

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

RPM: Final = 40
BACK_WITHIN_S: Final = 5.0
SETTLED_S: Final = 4.0  # by then every worker has watched the others for long enough
LONG: Final = '[[sim {"tokens": 300, "ttft_ms": 10, "tokens_per_s": 10}]]'


def client(name: str, **limits: int) -> dict[str, Any]:
    digest = sha256(f"key-of-{name}".encode()).hexdigest()
    return {"id": name, "key_sha256": digest, "limits": limits}


def auth(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer key-of-{name}"}


@pytest.fixture(scope="module")
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider({"any_key": True, "any_model": True, "latency_ms": 30}) as running:
        yield running


@pytest.fixture(scope="module")
def group(server: RedisServer, provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    with GatewayGroup(configuration(provider), workers=3, redis_url=server.url) as running:
        yield running


@pytest.fixture
def victim(server: RedisServer, provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    with GatewayGroup(configuration(provider), workers=1, redis_url=server.url) as running:
        yield running


def configuration(provider: SimulatedProvider) -> dict[str, Any]:
    clients = [
        client("busy", rpm=RPM),
        client("patient", concurrency=1),
        client("bereft", concurrency=1),
        client("free"),
    ]
    return {**one_model(provider.base_url), "clients": clients}


def provided(provider: SimulatedProvider) -> tuple[int, int]:
    """Requests and tokens of the provider's one key so far."""
    (key,) = provider.stats()["keys"].values() or [{"accepted": 0, "tokens": 0}]
    return key["accepted"], key["tokens"]


async def one_after_the_other(url: str, count: int) -> list[int]:
    """Each request on a connection of its own, so that workers take turns."""
    statuses = []
    for number in range(count):
        connector = aiohttp.TCPConnector(force_close=True)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post(
                url, json=chat(stream=number % 2 == 0), headers=auth("patient")
            ) as response,
        ):
            await response.read()
            statuses.append(response.status)
    return statuses


def test_three_workers_admit_exactly_what_the_client_may_ask_in_a_minute(
    group: GatewayGroup, provider: SimulatedProvider, server: RedisServer
) -> None:
    url = f"{group.base_url}/v1/chat/completions"
    requests_before, tokens_before = provided(provider)

    async def both() -> tuple[Outcomes, Outcomes]:
        busy = spread(url, chat(max_tokens=20), count=150, over_s=2, headers=auth("busy"))
        free = spread(url, chat(max_tokens=20), count=30, over_s=2, headers=auth("free"))
        return await asyncio.gather(busy, free)

    busy, free = asyncio.run(both())

    assert busy.statuses == {200: RPM, 429: 150 - RPM}
    assert free.statuses == {200: 30}, "others are not touched by it"
    requests, tokens = provided(provider)
    assert requests - requests_before == RPM + 30

    link = Redis.from_url(server.url, protocol=2, decode_responses=True)
    counted = present(texts(link, "gw1:c:{busy}"))
    spent = tokens - tokens_before
    assert spent > 0
    assert counted["pr"] * (RPM + 30) == spent * RPM, "all requests are alike"
    assert counted["i"] == 0
    assert link.exists("gw1:c:{free}") == 0


def test_a_client_that_waits_for_its_answer_never_meets_its_own_slot_on_another_worker(
    group: GatewayGroup,
) -> None:
    statuses = asyncio.run(one_after_the_other(f"{group.base_url}/v1/chat/completions", 60))

    assert statuses == [200] * 60


async def waits_after_a_kill_s(victim: GatewayGroup, others: GatewayGroup) -> float:
    """How long a client waits whose only slot a killed worker held."""
    path, headers = "/v1/chat/completions", auth("bereft")
    await asyncio.sleep(SETTLED_S)
    async with aiohttp.ClientSession(headers=headers) as session:

        async def ask() -> int:
            async with session.post(f"{others.base_url}{path}", json=chat()) as response:
                await response.read()
                return response.status

        async with session.post(f"{victim.base_url}{path}", json=chat(LONG, stream=True)) as held:
            assert held.status == 200
            assert await ask() == 429
            os.kill(victim.worker_pids()[0], signal.SIGKILL)
            killed_s = time.monotonic()
            while await ask() != 200:
                assert time.monotonic() - killed_s < 20
                await asyncio.sleep(0.05)
    return time.monotonic() - killed_s


def test_a_slot_that_a_killed_worker_held_is_free_within_five_seconds(
    group: GatewayGroup, victim: GatewayGroup
) -> None:
    assert asyncio.run(waits_after_a_kill_s(victim, group)) <= BACK_WITHIN_S
