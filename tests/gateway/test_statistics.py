"""Every end of an attempt reaches the statistics of its target with what it says."""

import asyncio
from typing import Any

import aiohttp
import pytest

from cluster_gw.core.routing.statistics import NO_STATISTICS, Statistics
from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.store.statistics import read_whole
from tests.fakes.gateway import Gateway, provider
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_health import ONE_KEY, ONE_MODEL, ask, status


def quick(simulator: RunningSimulator) -> dict[str, Any]:
    """The provider `a`, given up after half a second of silence."""
    bounds = {"first_byte_s": 0.5, "stall_s": 0.5}
    return {"a": provider(simulator.base_url, timeouts=bounds)}


async def statistics(gateway: Gateway) -> Statistics:
    await gateway.engine.settle()
    prefix, redis = gateway.settings.redis.prefix, gateway.engine.redis
    now_s, _ = await redis.call("TIME")
    now = await redis.call("HGET", f"{prefix}:b:{{a.a1}}:a1:one", "now")
    return read_whole(now, b"", int(now_s) * 1000) if now else NO_STATISTICS


async def test_a_buffered_answer_tells_its_output_and_latency(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)

    await ask(http, gateway, "a")

    told = await statistics(gateway)
    assert told.successes == pytest.approx(1.0, rel=1e-3)
    assert told.failures == told.first_bytes == 0.0
    assert told.output_tokens > 0
    assert told.latency_ms > 0


async def test_a_stream_tells_its_time_to_first_byte(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)
    text = steer(id="a", tokens=10, ttft_ms=120, tokens_per_s=100)

    await post(http, gateway.base_url, chat(text, stream=True))

    told = await statistics(gateway)
    assert told.mean_first_byte_ms is not None
    assert 110 <= told.mean_first_byte_ms < 1000
    assert told.latency_ms > told.first_byte_ms
    assert told.tokens_per_s is not None


@pytest.mark.parametrize(
    ("fault", "failures", "timeouts"),
    [
        (status(503), 1.0, 0.0),
        (status(429), 1.0, 0.0),
        (status(400), 0.0, 0.0),
        ({"kind": "hang_before_headers", "max_s": 5}, 1.0, 1.0),
    ],
)
async def test_failures_of_the_target_count_and_those_of_the_client_do_not(
    start: Start,
    http: aiohttp.ClientSession,
    simulator: RunningSimulator,
    fault: Any,
    failures: float,
    timeouts: float,
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, providers=quick(simulator))

    await ask(http, gateway, "a", fault)

    told = await statistics(gateway)
    assert (told.successes, told.failures, told.timeouts) == pytest.approx(
        (0.0, failures, timeouts), rel=1e-3
    )


async def test_a_client_that_leaves_says_nothing_of_the_target(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)
    text = steer(id="a", tokens=10, ttft_ms=5000)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await post(http, gateway.base_url, chat(text))

    assert await statistics(gateway) == Statistics()
