"""`GET /api/limits`: what the windows of each key count, beside what they allow."""

from typing import Any, Final

import aiohttp

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post

KEYS: Final[list[dict[str, Any]]] = [
    {"id": "a1", "provider": "a", "secret": "s", "limits": {"rpm": 9, "concurrency": 4}},
    {"id": "a2", "provider": "a", "secret": "s", "account": "team"},
    {"id": "a3", "provider": "a", "secret": "s", "account": "team"},
]
MODELS: Final = [
    {"provider": "a", "model": "one", "limits": {"rpm": 5, "tpd": 10_000}},
    {"provider": "a", "model": "two"},
]


async def rows(gateway: Gateway) -> dict[str, Any]:
    async with gateway.admin() as admin:
        answer = await admin.get("/api/limits")
    assert answer.status_code == 200, answer.text
    return {row["key"]: row for row in answer.json()["items"]}


def scopes(row: Any) -> list[tuple[str, list[str]]]:
    return [(one["scope"], one["routes"]) for one in row["windows"]]


async def test_each_key_has_a_window_for_each_model_and_one_for_itself(start: Start) -> None:
    told = await rows(await start(keys=KEYS, models=MODELS))

    assert scopes(told["a1"]) == [("model", ["a/one"]), ("key", []), ("model", ["a/two"])]
    assert scopes(told["a2"]) == [("model", ["a/one"]), ("model", ["a/two"])]
    assert (told["a1"]["account"], told["a2"]["account"]) == ("a1", "team")
    one, key, two = told["a1"]["windows"]
    assert one["rpm"] == {"used": 0, "limit": 5}
    assert one["rpd"] == {"used": 0, "limit": None}
    assert key["concurrency"] == {"used": 0, "limit": 4}
    assert two["tpd"]["limit"] is None
    assert (one["day_reset"], one["day_ends_ms"]) == ("rolling", None)


async def test_windows_count_what_was_served(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start(keys=KEYS[:1], models=MODELS)
    for _ in range(3):
        await post(http, gateway.base_url, chat())
    await gateway.engine.settle()

    one, key, two = (await rows(gateway))["a1"]["windows"]

    assert (one["rpm"]["used"], one["rpd"]["used"], key["rpm"]["used"]) == (3, 3, 3)
    assert one["tpd"]["used"] == key["tpd"]["used"] > 0
    assert two["rpm"]["used"] == one["concurrency"]["used"] == 0


async def test_calendar_day_says_when_it_ends(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    provider = {"dialect": "openai", "base_url": simulator.base_url, "day_reset": "UTC"}
    gateway = await start(providers={"a": provider}, keys=KEYS[:1], models=MODELS)
    await post(http, gateway.base_url, chat())
    await gateway.engine.settle()

    now_ms = gateway.engine.deps.clock.wall_ms()
    one = (await rows(gateway))["a1"]["windows"][0]

    assert one["day_reset"] == "UTC"
    assert now_ms < one["day_ends_ms"] <= now_ms + 86_400_000


async def test_caps_over_all_models_of_a_key_count_beside_the_windows(
    start: Start, http: aiohttp.ClientSession
) -> None:
    capped = {**KEYS[1], "caps": {"rpd": 7, "monthly_tokens": 9000}}
    gateway = await start(keys=[capped, KEYS[2]], models=MODELS)
    for _ in range(3):
        await post(http, gateway.base_url, chat())
    await gateway.engine.settle()

    told = await rows(gateway)

    assert told["a3"]["caps"] is None
    caps, now_ms = told["a2"]["caps"], gateway.engine.deps.clock.wall_ms()
    served = sum(one["rpd"]["used"] for one in told["a2"]["windows"])
    assert (caps["rpd"]["used"], caps["rpd"]["limit"]) == (served, 7)
    assert 0 < served < 4
    assert caps["monthly_tokens"]["used"] > 0
    assert caps["tpd"]["limit"] is None
    assert now_ms < caps["rpd"]["ends_ms"] <= caps["monthly_tokens"]["ends_ms"]


async def test_caps_that_cannot_be_read_are_told_as_unknown(start: Start) -> None:
    keys = [{**KEYS[0], "caps": {"rpd": 7}}]
    gateway = await start(keys=keys, models=MODELS, prefix="spoiltcaps")
    await gateway.engine.redis.call("HSET", "spoiltcaps:w:{a.a1}:a1:_caps", "now", "1 2")

    caps = (await rows(gateway))["a1"]["caps"]
    assert caps["rpd"] == {"used": None, "limit": 7}
    assert {one["used"] for one in caps.values()} == {None}


async def test_while_redis_is_away_nothing_is_told(start: Start) -> None:
    gateway = await start()
    await gateway.engine.redis.close()

    async with gateway.admin() as admin:
        answers = [await admin.get("/api/limits"), await admin.get("/api/requests")]

    assert {(one.status_code, one.json()["error"]["code"]) for one in answers} == {
        (503, "redis_lost")
    }
