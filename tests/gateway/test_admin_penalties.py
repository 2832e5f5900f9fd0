"""What is held against routes is shown from Redis, and forgotten on every worker at once."""

from typing import Any

import aiohttp

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.test_health import ONE_KEY, ONE_MODEL, ask, calls, far, status
from tests.gateway.test_model_health import SICK, THREE_KEYS, fail_on_every_key

PATH = "/api/fallback/penalty-inspector"


async def held(gateway: Gateway) -> Any:
    async with gateway.admin() as admin:
        return (await admin.get(PATH)).json()["rows"]


async def cut_off(gateway: Gateway) -> list[str]:
    async with gateway.admin() as admin:
        return [one["provider"] for one in (await admin.get(PATH)).json()["providers"]]


async def forget(gateway: Gateway) -> Any:
    async with gateway.admin() as admin:
        return (await admin.delete(PATH)).json()


async def test_nothing_is_held_against_routes_that_are_well(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)
    await ask(http, gateway, "well")

    assert await held(gateway) == []
    assert (await forget(gateway))["cleared"] == 0


async def test_key_that_rests_is_shown_and_serves_again_when_that_is_forgotten(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(providers=far(simulator), keys=ONE_KEY, models=ONE_MODEL)
    await ask(http, gateway, "limited", status(429, retry_after=300))

    (row,) = await held(gateway)
    cleared = await forget(gateway)
    answered, _ = await ask(http, gateway, "next")

    (cooldown,) = row["cooldowns"]
    assert (row["route"], row["priority"], row["fallback_enabled"]) == ("a/one", 1, True)
    assert (cooldown["key"], cooldown["scope"]) == ("a1", "target")
    assert 290_000 < cooldown["expires_in_ms"] <= 300_000
    assert "cooldown" in row["reasons"]
    assert cleared["cleared"] >= 1
    assert (answered, calls(simulator, "next")) == (200, 1)
    assert [one["cooldowns"] for one in await held(gateway)] == []


async def test_bench_and_penalty_of_a_model_are_shown_and_forgotten_by_another_worker(
    start: Start, http: aiohttp.ClientSession
) -> None:
    first = await start(keys=THREE_KEYS, models=ONE_MODEL)
    prefix = first.settings.redis.prefix
    second = await start(keys=THREE_KEYS, models=ONE_MODEL, prefix=prefix)
    await fail_on_every_key(http, first, "sick")
    refused, _ = await ask(http, first, "refused")

    (row,), before = await held(second), await cut_off(second)
    await forget(second)
    answered, _ = await ask(http, second, "there")

    assert refused == 429
    assert "bench" in row["reasons"]
    assert row["penalty"]["value"] > 0
    assert row["penalty"]["rate_limit_factor"] < 1
    assert answered == 200
    assert (await held(first), before, await cut_off(first)) == ([], ["a"], [])


async def test_while_redis_is_away_nothing_is_known(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)
    await ask(http, gateway, "sick", SICK)
    await gateway.engine.redis.close()

    async with gateway.admin() as admin:
        answers = [await admin.get(PATH), await admin.delete(PATH)]

    assert {(one.status_code, one.json()["error"]["code"]) for one in answers} == {
        (503, "redis_lost")
    }
