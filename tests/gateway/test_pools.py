"""Keys that share an account share its limits; a key is held to what its provider caps."""

import json
from typing import Any

import aiohttp

from cluster_gw.app.engine import wall_ms
from cluster_gw.simulator.server import RunningSimulator
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post

DAY_MS = 86_400_000
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


async def test_caps_hold_a_key_over_all_its_models_and_say_when_they_open(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    provider = {"dialect": "openai", "base_url": simulator.base_url, "caps": {"rpd": 2}}
    models = [{"provider": "a", "model": name} for name in ("one", "two")]
    gateway = await start(providers={"a": provider}, keys=KEYS[:1], models=models)

    answers = [
        await post(http, gateway.base_url, chat("hello", model=f"a/{name}"))
        for name in ("one", "two", "one")
    ]

    response, body = answers[-1]
    error = json.loads(body)["error"]
    to_midnight_ms = DAY_MS - wall_ms() % DAY_MS
    assert [one.status for one, _ in answers] == [200, 200, 429]
    assert [item["code"] for item in error["skipped"]] == ["provider_daily_cap"]
    assert abs(error["retry_after_ms"] - to_midnight_ms) < 5000
    assert int(response.headers["Retry-After"]) >= 1


async def test_heavy_model_uses_up_the_day_of_its_key(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    provider = {"dialect": "openai", "base_url": simulator.base_url, "caps": {"tpd": "1M"}}
    models = [{"provider": "a", "model": "one", "token_weight": 2.5}]
    gateway = await start(providers={"a": provider}, keys=KEYS[:1], models=models)

    _, body = await post(http, gateway.base_url, chat("hello"))
    await gateway.engine.settle()

    prefix = gateway.settings.redis.prefix
    now = await gateway.engine.redis.call("HGET", f"{prefix}:w:{{a.team}}:a1:_caps", "now")
    _, _, requests, weighted, _, _, tokens, _ = map(int, now.split())
    used = json.loads(body)["usage"]["total_tokens"]
    assert (requests, weighted, tokens) == (1, used * 2500, used)
