"""What a worker learns of models that refuse tools, and what takes it back."""

from typing import Any, Final

import aiohttp

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer

TOOLS: Final = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
WORDS: Final = {"error": {"message": "this model does not support tools", "type": "bad"}}
REFUSAL: Final = {"kind": "status", "code": 400, "body": WORDS}


async def refuse(http: aiohttp.ClientSession, gateway: Gateway, name: str, **fields: Any) -> None:
    text = steer(id=name, fault=REFUSAL, times=1)
    body = {"model": "auto", "messages": [{"role": "user", "content": text}], **fields}
    await post(http, gateway.base_url, body)
    assert await gateway.engine.settle() == 0
    await gateway.engine.health.board.refresh()


async def age(gateway: Gateway, by_ms: int) -> None:
    """Have the refusal be older, and the worker know it."""
    place = f"{gateway.settings.redis.prefix}:{{status}}:tools"
    at_ms = int(await gateway.engine.redis.call("HGET", place, "a.one"))
    await gateway.engine.redis.call("HSET", place, "a.one", str(at_ms - by_ms))
    await gateway.engine.health.board.refresh()


async def test_answer_to_a_request_with_tools_takes_a_refusal_back(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    await refuse(http, gateway, "refused", tools=TOOLS)
    board = gateway.engine.health.board
    refused = set(board.toolless)
    await age(gateway, 2_000)  # admissions are known to the second
    body = {**chat(), "model": "a/one", "tools": TOOLS}
    response, answer = await post(http, gateway.base_url, body)
    assert (response.status, await gateway.engine.settle()) == (200, 0), answer
    await board.refresh()

    assert (refused, board.toolless) == ({("a", "one")}, frozenset())
    told = [line["event"] for line in gateway.events() if line["event"].startswith("model.tools")]
    assert told == ["model.tools_refused", "model.tools_taken"]


async def test_request_without_tools_proves_nothing_of_them(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start()

    await refuse(http, gateway, "odd")

    assert gateway.engine.health.board.toolless == frozenset()


async def test_explanation_tells_who_refused(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start()
    await refuse(http, gateway, "explained", tools=TOOLS)
    async with gateway.admin() as admin:
        asked = {"request": {**chat(), "model": "auto", "tools": TOOLS}, "surface": "chat"}
        told = (await admin.post("/api/explain", json=asked)).json()

    last = told["ranking"][-1]
    assert (last["route"], "refused tools lately" in last["reasons"]) == ("a/one", True)
