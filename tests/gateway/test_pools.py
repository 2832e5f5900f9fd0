"""Keys that share an account at their provider share its limits."""

import json
from typing import Any

import aiohttp

from cluster_gw.simulator.server import RunningSimulator
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post

KEYS = [
    {"id": f"a{n}", "provider": "a", "secret": f"secret-of-a{n}", "account": "team"}
    for n in (1, 2, 3)
]


def pooled(simulator: RunningSimulator, **limits: int) -> dict[str, Any]:
    provider = {"dialect": "openai", "base_url": simulator.base_url}
    return {"a": {**provider, "accounts": {"team": {"limits": limits}}}}


async def test_keys_of_an_account_serve_no_more_than_it_may(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    models = [{"provider": "a", "model": name} for name in ("one", "two")]
    gateway = await start(providers=pooled(simulator, rpm=4), keys=KEYS, models=models)

    answers = [await post(http, gateway.base_url, chat("hello")) for _ in range(5)]

    assert [response.status for response, _ in answers] == [200] * 4 + [429]
    skipped = json.loads(answers[-1][1])["error"]["skipped"]
    assert {item["code"] for item in skipped} == {"rpm"}
    assert {item["detail"] for item in skipped} == {"rpm of the account is used up"}
    assert len(skipped) == 6  # each of two models on each of three keys


async def test_account_gives_back_what_was_not_used(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(
        providers=pooled(simulator, concurrency=1, tpd=100_000),
        keys=KEYS,
        models=[{"provider": "a", "model": "one"}],
    )

    response, body = await post(http, gateway.base_url, chat("hello"))
    await gateway.engine.settle()

    prefix = gateway.settings.redis.prefix
    now = await gateway.engine.redis.call("HGET", f"{prefix}:w:{{a.team}}:_acct", "now")
    *_, requests, tokens, in_flight, _ = now.decode().split()
    assert response.status == 200
    assert (requests, in_flight) == ("1", "0")
    assert int(tokens) == json.loads(body)["usage"]["total_tokens"]
