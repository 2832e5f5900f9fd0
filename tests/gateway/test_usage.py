"""Usage of one worker with faults is what its provider's books say; two forms of it."""

import csv
import io
from typing import Any

import aiohttp
import httpx
import pytest

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer

MODELS = [
    {"provider": "a", "model": "one", "price": {"input": 0.5, "output": 2.0}},
    {"provider": "b", "model": "two", "price": {"input": 0.5}},  # of its answers nobody knows
]


@pytest.fixture
async def gateway(start: Start) -> Gateway:
    return await start(models=MODELS, cache={"enabled": True})


async def test_full_usage_is_told_once_by_name(gateway: Gateway) -> None:
    book = gateway.engine._admissions.usage
    book.full, book.is_saved_full = frozenset({"{a.a1}:a1"}), True
    book._looks = 1  # the next look is not yet due

    for _ in range(2):
        await gateway.engine.usage._flush()

    told = [line["key"] for line in gateway.events() if line["event"] == "usage.full"]
    assert told == ["a1", None]
    families = {family.name: family for family in gateway.registry.snapshot().families}
    assert [one.value for one in families["gw_usage_full_keys_count"].samples] == [2]


async def used(gateway: Gateway, query: str = "group_by=model") -> dict[str, Any]:
    await gateway.engine.settle()
    async with gateway.admin() as admin:
        answer = await admin.get(f"/api/usage?{query}")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def test_sums_are_those_of_the_providers_own_books(
    gateway: Gateway, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    faults: list[dict[str, Any]] = [
        {},
        {"tokens": 7},
        {"fault": {"kind": "status", "code": 500}, "times": 1, "id": "e1"},
        {"fault": {"kind": "status", "code": 429}, "times": 1, "id": "e2"},
        {"fault": {"kind": "status", "code": 400}, "times": 1, "id": "e3"},
        {"usage": {"prompt_tokens": 40, "completion_tokens": 9, "cached_tokens": 30}},
    ]
    bodies = [
        chat(steer(**fault) + f" {number}", stream=stream, model=model)
        for number, fault in enumerate(faults)
        for stream in (False, True)
        for model in ("auto", "b/two")
    ]
    for body in bodies:
        await post(http, gateway.base_url, body, X_Gw_Cache="off")

    told, books = await used(gateway), simulator.stats()["totals"]

    total = told["total"]
    assert total["requests"] == books["accepted"]
    assert total["total_tokens"] == books["tokens"]
    assert total["prompt_tokens"] == books["prompt_tokens"]
    assert total["completion_tokens"] == books["completion_tokens"]
    assert total["errors"] == books["failed"]
    assert sum(item["requests"] for item in told["items"]) == total["requests"]
    assert total["cached_tokens"] == 4 * 30
    assert {"rate_limit", "server_error"} <= set(total["errors_by_family"])


async def test_tokens_nobody_reported_are_those_the_windows_keep(
    gateway: Gateway, http: aiohttp.ClientSession, admin: httpx.AsyncClient
) -> None:
    for number, fault in enumerate(({"at_byte": 0}, {"at_frame": 2}, {"at_frame": 3})):
        directive = {"id": f"c{number}", "fault": {"kind": "cut", **fault}, "times": 1}
        await post(http, gateway.base_url, chat(steer(**directive), stream=number > 0))

    total = (await used(gateway))["total"]

    items = (await admin.get("/api/limits")).json()["items"]
    windows = [window for item in items for window in item["windows"] if window["scope"] == "model"]
    assert total["requests"] == sum(window["rpd"]["used"] for window in windows) >= 4
    assert total["total_tokens"] == sum(window["tpd"]["used"] for window in windows)
    assert total["errors"] >= 3


async def test_cost_is_that_of_the_priced_and_null_where_nobody_knows(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    for model in ("a/one", "b/two"):
        await post(http, gateway.base_url, chat(steer(usage=usage), model=model))

    one, two = (await used(gateway))["items"]

    assert (one["model"], one["cost_usd"], one["unpriced_requests"]) == ("a/one", 0.0007, 0)
    assert (two["model"], two["cost_usd"], two["unpriced_requests"]) == ("b/two", None, 1)


async def test_answers_of_the_cache_are_hits_with_what_they_saved(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    usage = {"prompt_tokens": 50, "completion_tokens": 8}
    for stream in (False, False, True):
        await post(http, gateway.base_url, chat(steer(usage=usage), temperature=0, stream=stream))
        await gateway.engine.caches.settle()

    told = await used(gateway, "group_by=key,client")

    assert told["total"]["requests"] == 1
    assert [
        (one["key"], one["cache_hits"], one["saved_prompt_tokens"]) for one in told["items"]
    ] == [
        (None, 2, 100),
        ("a1", 0, 0),
    ]
    assert told["total"]["saved_completion_tokens"] == 16
    assert {one["client"] for one in told["items"]} == {"anonymous"}


async def test_a_client_that_leaves_is_counted_and_no_error(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    body = chat(steer(tokens=500, tokens_per_s=50.0), stream=True)
    async with http.post(f"{gateway.base_url}/v1/chat/completions", json=body) as response:
        await response.content.readany()
    await until_soon(lambda: any(line["event"] == "request.finished" for line in gateway.events()))

    total = (await used(gateway))["total"]
    assert (total["requests"], total["errors"], total["cancelled"]) == (1, 0, 1)


async def test_a_provider_nobody_answers_at_is_an_error_without_a_request(
    start: Start, http: aiohttp.ClientSession
) -> None:
    silent = {"dialect": "openai", "base_url": "http://127.0.0.1:1/v1"}
    gateway = await start(providers={"a": silent, "b": silent})
    await post(http, gateway.base_url, chat(model="a/one"))

    total = (await used(gateway))["total"]

    assert (total["requests"], total["cost_usd"]) == (0, 0.0)
    assert total["errors_by_family"] == {"network": total["errors"]}
    assert total["errors"] >= 1


async def test_csv_is_given_as_such(gateway: Gateway, http: aiohttp.ClientSession) -> None:
    await post(http, gateway.base_url, chat())
    await gateway.engine.settle()
    async with gateway.admin() as admin:
        answer = await admin.get("/api/usage?by=client,model,key,day&format=csv")
    told = (await used(gateway, "by=client,model,key,day"))["items"][0]

    (row,) = csv.DictReader(io.StringIO(answer.text, newline=""))
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert (row["client"], row["model"], row["key"]) == ("anonymous", "a/one", "a1")
    assert (row["day"], int(row["total_tokens"])) == (told["day"], told["total_tokens"])


@pytest.mark.parametrize(
    ("query", "param"), [("group_by=week", "group_by"), ("to=2999-01-01", "to"), ("x=1", "x")]
)
async def test_a_wrong_question_is_a_400_that_names_it(
    gateway: Gateway, admin: httpx.AsyncClient, query: str, param: str
) -> None:
    answer = await admin.get(f"/api/usage?{query}")

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


async def test_records_that_cannot_be_read_are_named_and_a_table_is_refused(
    gateway: Gateway, http: aiohttp.ClientSession, admin: httpx.AsyncClient
) -> None:
    await post(http, gateway.base_url, chat())
    day = (await used(gateway, "by=day"))["items"][0]["day"].replace("-", "")
    prefix = gateway.settings.redis.prefix
    name = f"{prefix}:u:{{b.b1}}:b1:{day}"
    await gateway.engine.redis.call("SET", name, "text")

    told = await used(gateway)

    assert told["unreadable"] == [name]
    assert told["total"]["requests"] == 1
    assert (await admin.get("/api/usage?format=csv")).status_code == 503
    await gateway.engine.redis.call("DEL", name)


async def test_what_redis_missed_is_counted_when_it_is_back(
    durable_server: RedisServer, simulator: RunningSimulator, http: aiohttp.ClientSession
) -> None:
    provider = {"dialect": "openai", "base_url": simulator.base_url}
    config = {
        "providers": {"a": provider},
        "keys": [{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
        "models": [{"provider": "a", "model": "one", "limits": {"rpm": 60}}],
    }
    async with Gateway(config, durable_server.url) as gateway:
        await post(http, gateway.base_url, chat())
        durable_server.kill()
        await until_soon(lambda: gateway.engine.is_alone and not gateway.engine.is_redis_used)
        for _ in range(3):
            await post(http, gateway.base_url, chat())
        durable_server.start()
        await until_soon(lambda: not gateway.engine.is_alone)

        total = (await used(gateway))["total"]

    books = simulator.stats()["totals"]
    assert (total["requests"], total["total_tokens"]) == (books["accepted"], books["tokens"])
    assert total["requests"] == 4
