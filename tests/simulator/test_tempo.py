import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cluster_gw.simulator.delivery import Pace
from cluster_gw.simulator.rate_headers import duration_text
from tests.simulator.bench_client import Bench, ask, raw_post, steer

Start = Callable[..., Awaitable[Bench]]


async def elapsed_s(awaitable: Awaitable[Any]) -> float:
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    await awaitable
    return loop.time() - start_s


def test_buffered_answer_waits_for_its_last_token() -> None:
    pace = Pace(latency_s=1.0, ttft_s=2.0, token_s=0.5)

    assert pace.head_wait_s(is_stream=True, tokens=5) == 1.0
    assert pace.head_wait_s(is_stream=False, tokens=5) == 5.0
    assert pace.head_wait_s(is_stream=False, tokens=0) == 3.0


async def test_latency_and_speed_of_the_provider_hold_for_buffered_answers(start: Start) -> None:
    bench = await start(latency_ms=20, ttft_ms=20, tokens_per_s=100, output_tokens=5)

    assert 0.08 <= await elapsed_s(bench.chat(ask())) < 1.0


async def test_directive_sets_its_own_tempo(start: Start) -> None:
    bench = await start(latency_ms=60_000)

    assert await elapsed_s(bench.chat(steer(latency_ms=0))) < 1.0


async def test_stream_tokens_arrive_one_by_one_after_the_first(start: Start) -> None:
    bench = await start(ttft_ms=30, tokens_per_s=50, output_tokens=3)
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    reader, writer = await bench.open(raw_post(ask("q", stream=True)))

    await reader.readuntil(b'"role"')
    role_s = loop.time() - start_s
    arrivals_s = []
    for _ in range(3):
        await reader.readuntil(b'"delta":{"content"')
        arrivals_s.append(loop.time() - start_s)
    writer.close()

    assert role_s < arrivals_s[0]
    assert arrivals_s[0] >= 0.03
    assert arrivals_s[2] >= 0.07


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.02, "20ms"), (0.0, "0ms"), (1.5, "1.5s"), (60.0, "1m0s"), (361.25, "6m1.25s")],
)
def test_durations_are_written_like_the_provider_does(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
