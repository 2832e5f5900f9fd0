"""Two workers of one cluster learn what a client's requests really take."""

import json
from typing import Any
from uuid import uuid4

import aiohttp

from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.telemetry.catalog import SETTLE_DRIFT_TOKENS
from tests.fakes.gateway import Gateway
from tests.gateway.requests import chat, post

ENOUGH = 120


def config(simulator: RunningSimulator, **routing: Any) -> dict[str, Any]:
    return {
        "providers": {"a": {"dialect": "openai", "base_url": simulator.base_url}},
        "keys": [{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
        "models": [{"provider": "a", "model": "one", "limits": {"tpm": 10_000_000}}],
        "routing": routing,
    }


async def drift_of_one(http: aiohttp.ClientSession, gateway: Gateway) -> float:
    """How far the estimate of one request was from what it used."""
    before = gateway.registry.value(SETTLE_DRIFT_TOKENS, "a")
    response, body = await post(http, gateway.base_url, chat("hello there"))
    assert response.status == 200
    assert json.loads(body)["usage"]["total_tokens"] < 250
    await gateway.engine.settle()
    return gateway.registry.value(SETTLE_DRIFT_TOKENS, "a") - before


async def test_two_workers_reserve_what_either_has_learned(
    redis_url: str, simulator: RunningSimulator, http: aiohttp.ClientSession
) -> None:
    prefix = f"t{uuid4().hex[:12]}"
    async with (
        Gateway(config(simulator), redis_url, prefix=prefix) as busy,
        Gateway(config(simulator), redis_url, prefix=prefix) as other,
    ):
        guessed = await drift_of_one(http, busy)
        assert await drift_of_one(http, other) > 700, "a thousand tokens of output are the guess"
        for _ in range(ENOUGH):
            await post(http, busy.base_url, chat("hello there"))
        for gateway in (busy, other):
            await gateway.engine.learner.look()

        learned = await drift_of_one(http, other)

        assert learned < guessed / 2
        assert await drift_of_one(http, busy) < guessed / 2


async def test_estimates_stay_where_learning_is_switched_off(
    redis_url: str, simulator: RunningSimulator, http: aiohttp.ClientSession
) -> None:
    prefix = f"t{uuid4().hex[:12]}"
    off = config(simulator, estimates={"learn": False})
    async with Gateway(off, redis_url, prefix=prefix) as gateway:
        for _ in range(30):
            await post(http, gateway.base_url, chat("hello there"))
        await gateway.engine.learner.look()

        assert await drift_of_one(http, gateway) > 700
        assert await gateway.engine.redis.call("KEYS", f"{prefix}:e:*") == []
