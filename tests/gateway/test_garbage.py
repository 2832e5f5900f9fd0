"""What a request leaves behind: nothing that only the collector could free."""

import asyncio
import gc
from collections import Counter
from typing import Any

import aiohttp
import pytest

from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer

REQUESTS = 20
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
MENDED = '<think>hm</think><tool_call>{"name": "look", "arguments": {}}</tool_call>'


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("family", "strategy"), [("classic", "priority"), ("bandit", "balanced")])
async def test_a_request_leaves_nothing_for_the_collector(
    stream: bool, family: str, strategy: str, start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(combos=[{"id": "auto", "family": family, "strategy": strategy}])
    assert await left_by(http, gateway, chat(stream=stream)) == {}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_mended_answer_leaves_nothing_either(
    stream: bool, start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()

    assert await left_by(http, gateway, chat(steer(text=MENDED), stream=stream, tools=TOOLS)) == {}


async def left_by(
    http: aiohttp.ClientSession, gateway: Gateway, request: dict[str, Any]
) -> dict[str, int]:
    """What many such requests leave for the collector, by type."""
    for _ in range(3):  # connections, scripts, caches
        await post(http, gateway.base_url, request)
    await gateway.engine.settle()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.garbage.clear()
    try:
        for _ in range(REQUESTS):
            await post(http, gateway.base_url, request)
        await gateway.engine.settle()
        await asyncio.sleep(0)
        gc.collect()
        left = Counter(type(thing).__qualname__ for thing in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

    # The client of the test and the background tasks of the worker leave a little at times.
    return {name: count for name, count in left.items() if count >= REQUESTS}
