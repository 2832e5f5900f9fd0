"""A client's own limits through one whole worker: refusals, headers, budgets, releases."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any

import aiohttp
import pytest

from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.telemetry import catalog
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import NO_RECORDS, chat, post, steer
from tests.lua.window_fields import fields_of, present

KEY = "sk-client"
AUTH = {"Authorization": f"Bearer {KEY}"}
FAIL = {"kind": "status", "code": 503}
HANG = {"kind": "hang_before_headers"}
ONE_MODEL = [{"provider": "a", "model": "one", "price": {"input": 1, "output": 10}}]


def client(**limits: float) -> dict[str, Any]:
    """Sections with one client."""
    digest = sha256(KEY.encode()).hexdigest()
    return {"clients": [{"id": "app", "key_sha256": digest, "limits": limits}]}


def code_of(body: bytes) -> str:
    code: str = json.loads(body)["error"]["code"]
    return code


def told(response: aiohttp.ClientResponse) -> dict[str, str]:
    """The headers about limits, without their common beginning."""
    start = "x-ratelimit-"
    return {
        name.lower().removeprefix(start): value
        for name, value in response.headers.items()
        if name.lower().startswith(start)
    }


async def counters(gateway: Gateway, key: str = "c:{app}") -> dict[str, int]:
    """What a window or a client counts now, once nothing is left to settle; empty if nothing is."""
    await gateway.engine.settle()
    flat = await gateway.engine.redis.call("HGETALL", f"{gateway.settings.redis.prefix}:{key}")
    return present(fields_of(flat)) if flat else {}


async def minute(gateway: Gateway, key: str = "c:{app}") -> tuple[int, int]:
    """Requests and tokens of the minute."""
    now = await counters(gateway, key)
    return now["rs"], now["ts"]


async def month(gateway: Gateway) -> tuple[int, int]:
    """Tokens and micro-USD of the client's month."""
    now = await counters(gateway)
    return now["pr"], now["pt"]


async def in_flight(gateway: Gateway) -> int:
    """How many holds of the client have a slot."""
    return (await counters(gateway)).get("i", 0)


async def becomes(condition: Callable[[], Awaitable[bool]], within_s: float = 2.0) -> bool:
    async with asyncio.timeout(within_s):
        while not await condition():  # noqa: ASYNC110 - what is waited for is in Redis
            await asyncio.sleep(0.005)
    return True


@pytest.mark.parametrize("stream", [False, True])
async def test_every_answer_tells_what_the_client_has_left(
    stream: bool, start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**client(rpm=3, tpm=50_000))

    first, _ = await post(http, gateway.base_url, chat(stream=stream), **AUTH)
    failed, _ = await post(http, gateway.base_url, chat(steer(fault=FAIL)), **AUTH)
    last, _ = await post(http, gateway.base_url, chat(stream=stream), **AUTH)
    refused, _ = await post(http, gateway.base_url, chat(stream=stream), **AUTH)

    statuses = [each.status for each in (first, failed, last, refused)]
    assert statuses == [200, 502, 200, 429]
    requests = [told(each)["remaining-requests"] for each in (first, failed, last, refused)]
    assert requests == ["2", "1", "0", "0"]
    assert told(first)["limit-requests"] == "3"
    assert told(first)["limit-tokens"] == "50000"
    assert 45_000 < int(told(first)["remaining-tokens"]) < 50_000
    assert told(first)["reset-requests"] in {"1m1s", "1m2s"}
    assert told(refused)["reset-tokens"] in {"1m0s", "1m1s", "1m2s"}


async def test_only_limits_that_exist_are_told(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start(**client(rpm=3))

    response, _ = await post(http, gateway.base_url, chat(), **AUTH)

    assert set(told(response)) == {"limit-requests", "remaining-requests", "reset-requests"}


async def test_a_client_at_its_rate_limit_gets_a_429_of_its_own_and_reaches_no_provider(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(**client(rpm=1))
    await post(http, gateway.base_url, chat(), **AUTH)

    response, body = await post(http, gateway.base_url, chat(), **AUTH)

    error = json.loads(body)["error"]
    assert (response.status, error["code"]) == (429, "client_rate_limited")
    assert (error["type"], error["cause"]) == ("rate_limit_error", "rpm")
    assert error["retryable"] is True
    assert 55 <= int(response.headers["retry-after"]) <= 62
    assert "1 requests per minute" in error["message"]
    assert simulator.stats()["totals"]["requests"] == 1
    assert gateway.registry.value(catalog.CLIENT_REFUSALS, "rpm") == 1
    assert gateway.registry.value(catalog.EXHAUSTED, "client_rate_limited") == 0
    assert (await minute(gateway, "w:{a.a1}:a1:one"))[0] == 1, "the reservation went back"


async def test_a_refusal_is_remembered_so_that_redis_is_not_asked_again(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**client(rpm=1), telemetry=NO_RECORDS)
    for _ in range(2):
        await post(http, gateway.base_url, chat(), **AUTH)
    await gateway.engine.settle()
    before = gateway.engine.redis.calls

    response, _ = await post(http, gateway.base_url, chat(), **AUTH)

    assert response.status == 429
    assert told(response)["remaining-requests"] == "0"
    assert gateway.engine.redis.calls == before


async def test_the_month_counts_what_the_provider_reported_and_ends_in_a_402(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(models=ONE_MODEL, **client(monthly_tokens=1100))

    used = 0
    for stream in (False, True):
        body = chat(stream=stream, max_tokens=16)
        if stream:
            body["stream_options"] = {"include_usage": True}
        _, answer = await post(http, gateway.base_url, body, **AUTH)
        used += int(
            answer.replace(b" ", b"")
            .rpartition(b'"total_tokens":')[2]
            .split(b"}")[0]
            .split(b",")[0]
        )
    tokens, _ = await month(gateway)
    response, body_ = await post(http, gateway.base_url, chat(max_tokens=1500), **AUTH)

    error = json.loads(body_)["error"]
    assert tokens == used > 0
    assert (response.status, error["code"]) == (402, "client_budget_exceeded")
    assert (error["type"], error["cause"]) == ("insufficient_quota", "monthly_tokens")
    assert error["retryable"] is False
    assert 0 < int(response.headers["retry-after"]) <= 31 * 86_400
    small, _ = await post(http, gateway.base_url, chat(max_tokens=16), **AUTH)
    assert small.status == 200, "what still fits is let in"


async def test_money_is_counted_at_the_price_of_the_model_that_answered(
    start: Start, http: aiohttp.ClientSession
) -> None:
    dear = {"provider": "b", "model": "two", "price": {"input": 100, "output": 1000}}
    gateway = await start(models=[*ONE_MODEL, dear], **client(monthly_usd=0.02))

    _, body = await post(http, gateway.base_url, chat(max_tokens=16), **AUTH)
    usage = json.loads(body)["usage"]
    _, micro_usd = await month(gateway)
    refused, error = await post(http, gateway.base_url, chat(max_tokens=20), **AUTH)

    assert micro_usd == usage["prompt_tokens"] * 1 + usage["completion_tokens"] * 10
    assert (refused.status, code_of(error)) == (402, "client_budget_exceeded")
    assert "0.02 USD" in json.loads(error)["error"]["message"]


async def test_a_request_above_the_tokens_of_a_minute_is_told_to_shrink(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**client(tpm=500))

    response, body = await post(http, gateway.base_url, chat(max_tokens=600), **AUTH)

    assert (response.status, code_of(body)) == (413, "client_request_too_large")
    assert "retry-after" not in response.headers


async def test_a_client_without_limits_holds_nothing_and_costs_nothing(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**client(), telemetry=NO_RECORDS)
    await post(http, gateway.base_url, chat(), **AUTH)
    await gateway.engine.settle()
    before = gateway.engine.redis.calls

    response, _ = await post(http, gateway.base_url, chat(), **AUTH)
    await gateway.engine.settle()

    assert told(response) == {}
    assert gateway.engine.redis.calls == before + 3, (
        "reserve, settle and the statistics of a second"
    )
    assert await counters(gateway) == {}


async def test_hold_and_reservation_are_one_round_trip_and_so_are_their_settlements(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**client(rpm=9, concurrency=2))
    await post(http, gateway.base_url, chat(), **AUTH)
    await gateway.engine.settle()
    redis = gateway.engine.redis
    before = (redis.calls, redis.flushes)

    await post(http, gateway.base_url, chat(), **AUTH)
    await gateway.engine.settle()

    tally = 1  # the statistics of a second
    record = 1  # of the request; it leaves with the settlements
    assert (redis.calls, redis.flushes) == (before[0] + 4 + record + tally, before[1] + 2 + tally)


async def test_a_second_attempt_takes_no_second_hold(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**client(rpm=9), telemetry=NO_RECORDS)
    await post(http, gateway.base_url, chat(), **AUTH)
    await post(http, gateway.base_url, chat(steer(fault=FAIL, id="warm", times=1)), **AUTH)
    await gateway.engine.settle()
    before = gateway.engine.redis.calls

    response, _ = await post(
        http, gateway.base_url, chat(steer(fault=FAIL, id="once", times=1)), **AUTH
    )
    await gateway.engine.settle()

    assert response.headers["x-fallback-attempts"] == "1"
    assert gateway.engine.redis.calls == before + 10, (
        "two attempts, one hold, a failure of model and provider, statistics"
    )


async def test_a_request_nobody_could_take_gives_everything_back(
    start: Start, http: aiohttp.ClientSession
) -> None:
    models = [{"provider": "a", "model": "one", "limits": {"rpm": 0}}]
    gateway = await start(models=models, **client(rpm=2, concurrency=1, monthly_tokens=10_000))

    answers = [await post(http, gateway.base_url, chat(), **AUTH) for _ in range(3)]

    assert [code_of(body) for _, body in answers] == ["rate_limit_exceeded"] * 3
    assert [told(response)["remaining-requests"] for response, _ in answers] == ["1"] * 3
    assert await minute(gateway) == (0, 0)
    assert await month(gateway) == (0, 0)


async def test_a_request_of_several_attempts_counts_once_with_the_tokens_of_all(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    combo = {
        "id": "auto",
        "family": "classic",
        "strategy": "priority",
        "members": "all",
        "response": {"forbidden_substrings": ["rude"]},
    }
    gateway = await start(combos=[combo], **client(rpm=5))

    response, _ = await post(http, gateway.base_url, chat(steer(text="a rude word")), **AUTH)

    assert response.status == 502
    requests, tokens = await minute(gateway)
    first = (await minute(gateway, "w:{a.a1}:a1:one"))[1]
    second = (await minute(gateway, "w:{b.b1}:b1:two"))[1]
    assert (requests, tokens) == (1, first + second)
    assert first > 0 < second


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_waits_for_each_answer_never_meets_its_own_slot(
    stream: bool, start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**client(concurrency=1))

    for _ in range(30):
        response, _ = await post(http, gateway.base_url, chat(stream=stream), **AUTH)
        assert response.status == 200

    assert await in_flight(gateway) == 0


async def test_a_second_request_at_a_time_is_refused_while_the_first_runs(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**client(concurrency=1))
    first = asyncio.create_task(post(http, gateway.base_url, chat(steer(latency_ms=300)), **AUTH))
    await asyncio.sleep(0.1)

    refused, body = await post(http, gateway.base_url, chat(), **AUTH)

    assert (refused.status, code_of(body)) == (429, "client_rate_limited")
    assert json.loads(body)["error"]["cause"] == "concurrency"
    assert refused.headers["retry-after"] == "1"
    assert (await first)[0].status == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_frees_its_slot_and_pays_for_what_was_used(
    stream: bool, start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**client(concurrency=1, rpm=9))
    fault = {"kind": "hang_mid_stream", "at_frame": 3} if stream else HANG
    text = steer(text="one two three", fault=fault)

    async def holds_one() -> bool:
        return await in_flight(gateway) == 1

    async def holds_none() -> bool:
        return await in_flight(gateway) == 0

    asking = asyncio.create_task(post(http, gateway.base_url, chat(text, stream=stream), **AUTH))
    await becomes(holds_one)
    await asyncio.sleep(0.05)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    assert await becomes(holds_none)
    requests, tokens = await minute(gateway)
    assert requests == 1
    assert 0 < tokens == (await minute(gateway, "w:{a.a1}:a1:one"))[1]


async def test_a_deadline_frees_the_slot(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start(**client(concurrency=1))

    response, _ = await post(
        http, gateway.base_url, chat(steer(fault=HANG)), X_Gw_Timeout="150ms", **AUTH
    )

    assert response.status == 504
    assert await in_flight(gateway) == 0
