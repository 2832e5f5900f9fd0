"""What a request leaves behind: nothing that only the collector could free."""

import asyncio
import gc
from collections import Counter

import aiohttp
import pytest

from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post

REQUESTS = 20


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("family", "strategy"), [("classic", "priority"), ("bandit", "balanced")])
async def test_a_request_leaves_nothing_for_the_collector(
    stream: bool, family: str, strategy: str, start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(combos=[{"id": "auto", "family": family, "strategy": strategy}])
    for _ in range(3):  # connections, scripts, caches
        await post(http, gateway.base_url, chat(stream=stream))
    await gateway.engine.settle()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.garbage.clear()
    try:
        for _ in range(REQUESTS):
            await post(http, gateway.base_url, chat(stream=stream))
        await gateway.engine.settle()
        await asyncio.sleep(0)
        gc.collect()
        left = Counter(type(thing).__qualname__ for thing in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()

    # The client of the test and the background tasks of the worker leave a little at times.
    assert not {name: count for name, count in left.items() if count >= REQUESTS}
