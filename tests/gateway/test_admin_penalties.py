"""What is held against routes is shown from Redis, and forgotten on every worker at once."""

from typing import Any

import aiohttp
from redis import Redis

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.test_health import ONE_KEY, ONE_MODEL, TWO_KEYS, ask, calls, far, status
from tests.gateway.test_model_health import SICK, THREE_KEYS, fail_on_every_key

PATIENT = {"breaker": {"threshold": 99}, "bench": {"failures": 99}}
PATH = "/api/fallback/penalty-inspector"


async def held(gateway: Gateway) -> Any:
    async with gateway.admin() as admin:
        return (await admin.get(PATH)).json()["rows"]


async def reasons(gateway: Gateway) -> set[str]:
    return {reason for row in await held(gateway) for reason in row["reasons"]}


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
    assert (cooldown["source"], cooldown["reason"]) == ("authoritative", "rate_limit")
    assert "cooldown" in row["reasons"]
    assert cleared["cleared"] >= 1
    assert (answered, calls(simulator, "next")) == (200, 1)
    assert await reasons(gateway) == {"recent_errors"}


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
    assert row["penalty"]["hits"] == 1
    assert row["penalty"]["rate_limit_factor"] < 1
    assert answered == 200
    assert await reasons(first) == {"recent_errors"}
    assert (before, await cut_off(first)) == (["a"], [])


async def test_of_one_key_alone_rests_and_breakers_are_forgotten(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(providers=far(simulator), keys=TWO_KEYS, models=ONE_MODEL)
    await ask(http, gateway, "limited", status(429, retry_after=300), times=2)

    async with gateway.admin() as admin:
        before = (await held(gateway))[0]["cooldowns"]
        told = await admin.delete("/api/keys/a1/cooldowns")
        again = await admin.delete("/api/keys/a1/cooldowns")
        unknown = await admin.delete("/api/keys/a9/cooldowns")
    after = (await held(gateway))[0]["cooldowns"]
    answered, _ = await ask(http, gateway, "next")

    assert [one["key"] for one in before] == ["a1", "a2"]
    assert [one["key"] for one in after] == ["a2"]
    assert (told.status_code, told.json()["id"]) == (200, "a1")
    assert (told.json()["cleared"], again.json()["cleared"]) == (1, 0)
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "not_found")
    assert (answered, calls(simulator, "next")) == (200, 1)


async def test_while_redis_is_away_nothing_is_known(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)
    await ask(http, gateway, "sick", SICK)
    await gateway.engine.redis.close()

    async with gateway.admin() as admin:
        answers = [
            await admin.get(PATH),
            await admin.delete(PATH),
            await admin.delete("/api/keys/a1/cooldowns"),
        ]

    assert {(one.status_code, one.json()["error"]["code"]) for one in answers} == {
        (503, "redis_lost")
    }


async def test_calls_that_failed_are_shown_for_half_an_hour_the_newest_first(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing=PATIENT)
    before_ms = gateway.engine.deps.clock.wall_ms()
    for number in range(7):
        await ask(http, gateway, f"bad-{number}", status(500 + number % 2))
    await ask(http, gateway, "well")

    (row,) = await held(gateway)

    errors = row["recent_errors"]
    assert (row["recent_error_count"], len(errors)) == (7, 5)
    assert row["reasons"][-1] == "recent_errors"
    times = [one["at_ms"] for one in errors]
    assert times == sorted(times, reverse=True)
    assert all(before_ms <= at_ms <= before_ms + 20_000 for at_ms in times)
    # Times are whole ms: of two calls within one, either may stand first.
    assert {one["http_status"] for one in errors} == {500, 501}
    assert {(one["key"], one["code"]) for one in errors} == {("a1", "upstream_error")}
    assert {len(one["request_id"]) for one in errors} == {32}


async def test_errors_of_before_are_not_held_against_a_route(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing=PATIENT)
    await ask(http, gateway, "bad", status(500))
    clock = gateway.engine.deps.clock

    penalties, now_ms = gateway.engine.penalties, clock.wall_ms()
    just_before = await penalties.list_rows(now_ms + 29 * 60_000)
    after = await penalties.list_rows(now_ms + 31 * 60_000)

    assert [row["reasons"] for row in just_before] == [["recent_errors"]]
    assert after == []


async def test_records_that_cannot_be_read_leave_the_rest_and_say_so(
    start: Start, http: aiohttp.ClientSession, redis_url: str
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing=PATIENT)
    await ask(http, gateway, "bad", status(500))
    prefix = gateway.settings.redis.prefix
    with Redis.from_url(redis_url, protocol=2) as redis:
        (name,) = redis.scan_iter(f"{prefix}:q:*:notable")
        (request_id,) = redis.hkeys(name)
        redis.hset(name, request_id, b"no record")
        (row,) = await held(gateway)
        redis.delete(name)
        redis.set(name, b"no hash")
        (other,) = await held(gateway)

    assert (row["recent_errors"], row["recent_error_count"]) == ([], 0)
    assert (other["recent_errors"], other["recent_error_count"]) == (None, None)
    assert row["reasons"] == other["reasons"] == ["penalty"]


async def test_breaker_of_a_target_is_shown_until_it_is_closed(
    start: Start, http: aiohttp.ClientSession
) -> None:
    routing = {"breaker": {"threshold": 1, "cooldown_ms": 40_000}, "bench": {"failures": 9}}
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing=routing)
    await ask(http, gateway, "bad", status(500))

    (row,) = await held(gateway)
    await forget(gateway)

    (breaker,) = row["breakers"]
    assert 35_000 < breaker.pop("until_in_ms") <= 40_000
    assert breaker.pop("until_ms") > gateway.engine.deps.clock.wall_ms()
    assert breaker == {
        "key": "a1",
        "key_status": "unknown",
        "scope": "target",
        "state": "open",
        "failures": 1,
    }
    assert "breaker" in row["reasons"]
    assert await reasons(gateway) == {"recent_errors"}


async def test_trial_that_fails_raises_no_penalty(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    routing = {"breaker": {"threshold": 1, "cooldown_ms": 1}, "bench": {"failures": 9}}
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing=routing)
    await ask(http, gateway, "bad", status(500))
    (before,) = await held(gateway)

    await ask(http, gateway, "trial", status(500))
    (after,) = await held(gateway)

    assert calls(simulator, "bad") + calls(simulator, "trial") == 2
    assert [one["penalty"]["hits"] for one in (before, after)] == [1, 1]
    assert [one["penalty"]["value"] for one in (before, after)] == [1.0, 1.0]


async def test_key_is_benched_for_a_while_by_an_operator_and_that_is_ended(start: Start) -> None:
    gateway = await start()
    async with gateway.admin() as admin:
        benched = await admin.post("/api/keys/a1/bench", json={"for_s": 60})
        rows = (await admin.get("/api/fallback/penalty-inspector")).json()["rows"]
        bad = [
            await admin.post("/api/keys/a1/bench", json=body)
            for body in ({"for_s": 0}, {"for_s": 86_401}, {"for_s": True}, {"for": 5})
        ]
        unknown = await admin.post("/api/keys/a9/bench")
        await admin.delete("/api/keys/a1/cooldowns")
        after = (await admin.get("/api/fallback/penalty-inspector")).json()["rows"]

    assert benched.status_code == 200
    rest = next(row for row in rows if row["provider"] == "a")["cooldowns"][0]
    assert (rest["key"], rest["scope"]) == ("a1", "key")
    assert rest["expires_at_ms"] == benched.json()["rests_until_ms"]
    assert {answer.status_code for answer in bad} == {400}
    assert unknown.status_code == 404
    assert [row for row in after if row["provider"] == "a"] == []
