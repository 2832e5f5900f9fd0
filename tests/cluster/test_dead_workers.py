"""A worker that dies, or seems to, with all slots of a key: the others get them back in time."""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.cluster.fleet import samples
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.lua.window_fields import present

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

SLOTS = 4
IN_TIME_S = 5.0
SETTLED_S = 3.5  # by then every worker has watched the others for long enough
LONG = {"tokens": 300, "ttft_ms": 10, "tokens_per_s": 10}
WINDOW = "{a.a1}:a1:sim-small"


class Fleet(msgspec.Struct, frozen=True):
    """Three workers on one Redis: one in a group of its own, to be the victim, and two others."""

    victim: GatewayGroup
    others: GatewayGroup
    provider: SimulatedProvider
    redis: RedisServer

    def window(self) -> tuple[int, int, int]:
        """In flight, requests and tokens as Redis counts them."""
        text = self.redis.command("HGET", f"gw1:w:{WINDOW}", "now").split(b"\r\n")[1]
        now = present({"now": text.decode()})
        return now["i"], now["pr"], now["pt"]

    def key(self) -> Any:
        """What the provider counted for its one key."""
        (key,) = self.provider.stats()["keys"].values()
        return key


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    binary = needed_redis()
    simulated = {
        "keys": {"upstream-secret": {"label": "a1", "concurrency": SLOTS}},
        "enforce": False,  # a refusal of its own would hide ours
        "output_tokens": 3,
    }
    with RedisServer(binary) as redis, SimulatedProvider(simulated) as provider:
        config = one_model(provider.base_url, concurrency=SLOTS)
        with (
            GatewayGroup(config, workers=1, redis_url=redis.url) as victim,
            GatewayGroup(config, workers=2, redis_url=redis.url) as others,
        ):
            until_s = time.monotonic() + 20
            while alive_workers(others) != 3:
                assert time.monotonic() < until_s
                time.sleep(0.05)
            yield Fleet(victim=victim, others=others, provider=provider, redis=redis)


def alive_workers(group: GatewayGroup) -> int:
    return int(samples(group).get("gw_alive_workers_count", 0))


def reaped_leases(fleet: Fleet) -> float:
    groups = (fleet.victim, fleet.others)
    return sum(samples(group).get("gw_leases_reaped_total", 0) for group in groups)


@asynccontextmanager
async def stream(
    group: GatewayGroup, steer: dict[str, Any]
) -> AsyncIterator[aiohttp.ClientResponse]:
    """A stream that has begun."""
    body = chat(f"x [[sim {json.dumps(steer)}]]", stream=True)
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{group.base_url}/v1/chat/completions", json=body) as response,
    ):
        assert response.status == 200, await response.text()
        yield response


async def ask(session: aiohttp.ClientSession, group: GatewayGroup) -> int:
    async with session.post(f"{group.base_url}/v1/chat/completions", json=chat()) as response:
        await response.read()
        return response.status


async def admitted_after_s(group: GatewayGroup) -> float:
    """How long it takes until a request is admitted; every other answer must be 429."""
    started_s = time.monotonic()
    async with aiohttp.ClientSession() as session:
        while (status := await ask(session, group)) != 200:
            assert status == 429
            assert time.monotonic() - started_s < 20
            await asyncio.sleep(0.05)
    return time.monotonic() - started_s


async def kill_with_all_slots(fleet: Fleet) -> tuple[float, list[int]]:
    """How long the others had to wait, and then the outcome of one stream more than slots."""
    await asyncio.sleep(SETTLED_S)
    async with AsyncExitStack() as streams:
        for _ in range(SLOTS):
            await streams.enter_async_context(stream(fleet.victim, LONG))
        async with aiohttp.ClientSession() as session:
            assert await ask(session, fleet.others) == 429
        os.kill(fleet.victim.worker_pids()[0], signal.SIGKILL)
        waited_s = await admitted_after_s(fleet.others)
        statuses = []
        async with aiohttp.ClientSession() as session:
            for _ in range(SLOTS):
                await streams.enter_async_context(stream(fleet.others, LONG))
                statuses.append(200)
            statuses.append(await ask(session, fleet.others))
    return waited_s, statuses


def test_slots_of_a_killed_worker_are_free_within_five_seconds(fleet: Fleet) -> None:
    waited_s, statuses = asyncio.run(kill_with_all_slots(fleet))

    assert waited_s <= IN_TIME_S
    assert statuses == [200] * SLOTS + [429]
    assert fleet.key()["violations"]["concurrency"] == 0
    assert fleet.key()["max_in_flight"] == SLOTS
    log = fleet.victim.log() + fleet.others.log()
    reports = [json.loads(line) for line in log.splitlines() if '"leases.reaped"' in line]
    assert [report["count"] for report in reports] == [SLOTS]
    assert reaped_leases(fleet) == SLOTS


async def freeze_with_all_slots(fleet: Fleet) -> tuple[list[str], float]:
    """The whole streams of a worker that was frozen for a while, and how long others waited."""
    short = {"tokens": 20, "ttft_ms": 10, "tokens_per_s": 10}
    pid = fleet.victim.worker_pids()[0]
    await asyncio.sleep(SETTLED_S)
    async with AsyncExitStack() as streams:
        answers = [
            await streams.enter_async_context(stream(fleet.victim, short)) for _ in range(SLOTS)
        ]
        os.kill(pid, signal.SIGSTOP)
        try:
            waited_s = await admitted_after_s(fleet.others)
        finally:
            os.kill(pid, signal.SIGCONT)
        return [await answer.text() for answer in answers], waited_s


def test_worker_that_was_only_frozen_ends_its_streams_and_settles_them_once(fleet: Fleet) -> None:
    texts, waited_s = asyncio.run(freeze_with_all_slots(fleet))

    assert waited_s <= IN_TIME_S
    assert reaped_leases(fleet) == SLOTS
    assert all(text.rstrip().endswith("data: [DONE]") for text in texts)
    until_s = time.monotonic() + 10
    key = fleet.key()
    # It beats once a second, and the others look as often.
    while fleet.window() != (0, SLOTS + 1, key["tokens"]) or alive_workers(fleet.others) != 3:
        assert time.monotonic() < until_s, (fleet.window(), key)
        time.sleep(0.05)


def test_worker_that_ends_in_order_is_off_the_list_at_once(fleet: Fleet) -> None:
    assert fleet.victim.stop() == 0

    assert fleet.redis.command("ZCARD", "gw1:{mem}:workers") == b":2\r\n"
    assert '"leases.reaped"' not in fleet.victim.log() + fleet.others.log()
