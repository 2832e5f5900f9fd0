"""Behind load balancers as their sample files say: streams flow evenly, restarts cut nothing."""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from statistics import median
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from tests.cluster.pools import chat, one_model
from tests.fakes.balancer import BALANCERS, Ports, balancer, program_of
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.lua.window_fields import present

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

GATEWAYS: Final = 3
SECRET: Final = "upstream-secret"
WINDOW: Final = "gw1:w:{a.a1}:a1:sim-small"
GAP_S: Final = 0.1
PIECES: Final = 20
STREAM: Final = {"tokens": 20, "ttft_ms": 20, "tokens_per_s": 8}
RETURNED_S: Final = 1.0


class Site(msgspec.Struct):
    """Three gateways, a Redis, and a provider that only counts violations."""

    redis: RedisServer
    provider: SimulatedProvider
    groups: list[GatewayGroup]
    stack: ExitStack
    workers: int

    def ports(self) -> list[Ports]:
        return [(group.port, group.admin_port) for group in self.groups]

    def config(self) -> dict[str, Any]:
        return one_model(self.provider.base_url, concurrency=400)

    def start(self, ports: Ports | None = None) -> GatewayGroup:
        group = GatewayGroup(
            self.config(), workers=self.workers, redis_url=self.redis.url, ports=ports
        )
        return self.stack.enter_context(group)

    def in_flight(self) -> int:
        text = self.redis.command("HGET", WINDOW, "now").split(b"\r\n")[1]
        return present({"now": text.decode()})["i"]


class Heard(msgspec.Struct):
    """What clients got: answers by status, whole streams, and what was wrong with others."""

    statuses: Counter[int] = msgspec.field(default_factory=Counter)
    whole: int = 0
    wrong: list[str] = []


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Of one worker each, unless a test wants more."""
    workers: int = getattr(request, "param", 1)
    simulated = {"keys": {SECRET: {"label": "a1", "concurrency": 400}}, "enforce": False}
    with (
        RedisServer(needed_redis()) as redis,
        SimulatedProvider(simulated) as provider,
        ExitStack() as stack,
    ):
        site = Site(redis=redis, provider=provider, groups=[], stack=stack, workers=workers)
        site.groups = [site.start() for _ in range(GATEWAYS)]
        yield site


@pytest.fixture
def front(request: pytest.FixtureRequest, site: Site) -> Iterator[str]:
    """The address of a balancer before the three."""
    if program_of(request.param) is None and "CI" not in os.environ:
        pytest.skip(f"{request.param} is not installed")
    with balancer(request.param, site.ports()) as base_url:
        yield base_url


async def read_stream(session: aiohttp.ClientSession, base_url: str, **steer: float) -> list[float]:
    """Read one stream to its end; when each piece came."""
    body = chat(f"x [[sim {json.dumps(steer)}]]", stream=True)
    came_s, text = [], b""
    async with session.post(f"{base_url}/v1/chat/completions", json=body) as response:
        assert response.status == 200, await response.text()
        async for chunk in response.content.iter_any():
            came_s.append(time.monotonic())
            text += chunk
    assert text.rstrip().endswith(b"data: [DONE]"), text[-300:]
    assert b'"error"' not in text
    return came_s


async def gaps_of(front: str) -> list[float]:
    """Seconds between what is heard of one stream whose pieces are sent `GAP_S` apart."""
    async with aiohttp.ClientSession() as session:
        came_s = await read_stream(
            session, front, tokens=PIECES, ttft_ms=20, tokens_per_s=1 / GAP_S
        )
    return [later - earlier for earlier, later in pairwise(came_s)]


@pytest.mark.parametrize("front", BALANCERS, indirect=True)
async def test_pieces_of_a_stream_are_not_collected(front: str) -> None:
    gaps_s = await gaps_of(front)

    # Beside other work a client hears some of them together.
    assert len(gaps_s) >= PIECES // 2
    assert median(gaps_s) < 1.5 * GAP_S


@pytest.mark.soak
@pytest.mark.parametrize("front", BALANCERS, indirect=True)
async def test_pieces_of_a_stream_come_evenly(front: str) -> None:
    gaps_s = await gaps_of(front)

    even = [gap_s for gap_s in gaps_s if 0.5 * GAP_S < gap_s < 1.5 * GAP_S]
    assert len(even) >= PIECES - 3, gaps_s  # the last come with the end


async def stream_on(base_url: str, heard: Heard, stop: asyncio.Event) -> None:
    """One client that has always a stream open."""
    async with aiohttp.ClientSession() as session:
        while not stop.is_set():
            try:
                await read_stream(session, base_url, **STREAM)
                heard.whole += 1
            except (aiohttp.ClientError, AssertionError) as error:
                heard.wrong.append(repr(error)[:300])


async def ask_on(base_url: str, heard: Heard, stop: asyncio.Event) -> None:
    """A client that asks short questions, twenty a second, on connections that it keeps."""
    async with aiohttp.ClientSession() as session:
        while not stop.is_set():
            try:
                async with session.post(f"{base_url}/v1/chat/completions", json=chat()) as response:
                    await response.read()
                    heard.statuses[response.status] += 1
            except aiohttp.ClientError as error:
                heard.wrong.append(repr(error)[:300])
            await asyncio.sleep(0.05)


async def restart_each(site: Site) -> None:
    """Restart one gateway after the other, as a rolling update does."""
    for place, group in enumerate(site.groups):
        group.process.terminate()
        assert await asyncio.to_thread(group.process.wait, 60) == 0
        site.groups[place] = await asyncio.to_thread(site.start, (group.port, group.admin_port))
        await asyncio.sleep(1.0)  # as long as a balancer needs to see it


async def rolled(site: Site, base_url: str, streams: int) -> Heard:
    """What clients hear while each gateway is restarted under their streams."""
    heard, stop = Heard(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(streams):
            group.create_task(stream_on(base_url, heard, stop))
        group.create_task(ask_on(base_url, heard, stop))
        await asyncio.sleep(1.0)
        assert site.in_flight() >= streams * 0.9
        await restart_each(site)
        stop.set()
    return heard


async def held_rolling(site: Site, front: str, streams: int) -> None:
    before = site.provider.stats()["keys"]["a1"]["violations"]

    heard = await rolled(site, front, streams)

    assert heard.wrong == []
    assert set(heard.statuses) == {200}
    assert heard.whole >= 2 * streams
    assert site.provider.stats()["keys"]["a1"]["violations"] == before
    until_s = time.monotonic() + RETURNED_S
    while site.in_flight():
        assert time.monotonic() < until_s, site.in_flight()
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("front", ["nginx"], indirect=True)  # which cannot ask who serves
async def test_a_rolling_restart_cuts_no_stream(front: str, site: Site) -> None:
    await held_rolling(site, front, 30)


@pytest.mark.soak
@pytest.mark.parametrize("site", [2], indirect=True, ids=["two workers"])
@pytest.mark.parametrize("front", BALANCERS, indirect=True)
async def test_a_rolling_restart_cuts_none_of_two_hundred_streams(front: str, site: Site) -> None:
    await held_rolling(site, front, 200)
