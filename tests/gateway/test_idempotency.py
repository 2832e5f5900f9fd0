"""A request with an idempotency key is one call upstream, however often it is asked for."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any, Final

import aiohttp
import pytest

from cluster_gw.telemetry import catalog
from tests.fakes.gateway import Gateway
from tests.fakes.redis_server import RedisServer
from tests.fakes.stepped_upstream import SteppedUpstream
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post

KEY: Final = "order-4711"
MASTER_KEY: Final = "ab" * 32


@pytest.fixture
async def upstream() -> AsyncIterator[SteppedUpstream]:
    async with SteppedUpstream() as running:
        yield running
        running.go.set()


@pytest.fixture
def config(upstream: SteppedUpstream) -> dict[str, Any]:
    return {
        "providers": {"p": {"dialect": "openai", "base_url": upstream.base_url}},
        "keys": [{"id": "p1", "provider": "p", "secret": "secret-of-p1"}],
        "models": [{"provider": "p", "model": "m"}],
        "combos": [{"id": "auto", "family": "classic", "strategy": "priority", "members": "all"}],
        "routing": {"attempts": {"max": 1}},
    }


@pytest.fixture
async def gateway(start: Start, config: dict[str, Any]) -> Gateway:
    return await start(**config)


async def ask(
    http: aiohttp.ClientSession, gateway: Gateway, key: str = KEY, text: str = "hi", **fields: Any
) -> tuple[aiohttp.ClientResponse, bytes]:
    return await post(http, gateway.base_url, chat(text, **fields), Idempotency_Key=key)


def counted(gateway: Gateway, result: str) -> float:
    return gateway.registry.value(catalog.IDEMPOTENCY, result)


async def is_kept(gateway: Gateway, count: int = 1) -> None:
    """Wait for what is done behind an answer."""
    await until_soon(lambda: counted(gateway, "kept") == count)


async def is_waited_for(gateway: Gateway, requests: int) -> None:
    """So many requests are under way."""
    await until_soon(lambda: gateway.current.in_flight == requests)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_repeated_request_is_sent_the_same_bytes_by_any_worker(
    stream: bool,
    config: dict[str, Any],
    upstream: SteppedUpstream,
    server: RedisServer,
    http: aiohttp.ClientSession,
) -> None:
    prefix = f"same{int(stream)}"
    async with (
        Gateway(config, server.url, prefix=prefix) as one,
        Gateway(config, server.url, prefix=prefix) as other,
    ):
        first, body = await ask(http, one, stream=stream)
        await is_kept(one)
        again, repeated = await ask(http, other, stream=stream)

    assert (first.status, again.status, upstream.calls) == (200, 200, 1)
    assert body == repeated
    assert b"there" in body
    assert first.headers["x-routed-via"] == "p/m"
    assert again.headers["x-routed-via"] == "idempotency"
    states = [one.headers["x-gw-idempotency"] for one in (first, again)]
    assert states == ["NEW", "REPLAY"]
    assert first.headers["content-type"] == again.headers["content-type"]
    assert first.headers["x-gw-request-id"] != again.headers["x-gw-request-id"]


async def test_a_replay_is_told_in_the_log_and_has_no_record(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    first, _ = await ask(http, gateway)
    await is_kept(gateway)
    again, _ = await ask(http, gateway)
    ids = [one.headers["x-gw-request-id"] for one in (first, again)]

    def lines() -> list[dict[str, Any]]:
        found = [line for line in gateway.events() if line["event"] == "request.finished"]
        return [line for line in found if line["request_id"] in ids]

    await until_soon(lambda: len(lines()) == 2)
    async with gateway.admin() as admin:
        records = [(await admin.get(f"/api/requests/{name}")).status_code for name in ids]
    assert [line.get("cache") for line in lines()] == [None, "idempotency"]
    assert [line.get("route") for line in lines()] == ["p/m", None]
    assert records == [200, 404]


async def test_another_request_under_the_same_key_is_a_conflict_that_sdks_do_not_repeat(
    gateway: Gateway, upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    await ask(http, gateway)
    await is_kept(gateway)

    response, body = await ask(http, gateway, text="something else")
    streamed, _ = await ask(http, gateway, stream=True)

    assert (response.status, streamed.status, upstream.calls) == (409, 409, 1)
    assert b"idempotency_key_conflict" in body
    assert response.headers["x-should-retry"] == "false"


async def test_a_request_is_the_same_by_its_meaning(
    gateway: Gateway, upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    url, headers = f"{gateway.base_url}/v1/chat/completions", {"Idempotency-Key": f" {KEY} "}
    bodies = (
        b'{"model":"auto","messages":[{"role":"user","content":"hi"}],"seed":1}',
        b'{"seed":1.0, "user":"u", "messages":[{"content":"h\\u0069","role":"user"}]}',
        b'{"seed":1, "stream":true, "messages":[{"content":"hi","role":"user"}]}',
    )

    statuses = []
    for body in bodies:
        async with http.post(url, data=body, headers=headers) as response:
            statuses.append((response.status, response.headers.get("x-gw-idempotency")))
        await is_kept(gateway)

    assert statuses == [(200, "NEW"), (200, "REPLAY"), (409, None)]
    assert upstream.calls == 1


@pytest.mark.parametrize("twin", ['{"a":1,"a":2}', '{"a":2,"a":1}'])
async def test_what_has_no_meaning_of_its_own_is_the_same_by_its_bytes(
    twin: str, gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    url, headers = f"{gateway.base_url}/v1/chat/completions", {"Idempotency-Key": KEY}
    body = '{"messages":[{"role":"user","content":"hi"}],"odd":%s}'

    states = []
    for odd in (twin, twin, '{"a":1,"a":1}'):
        async with http.post(url, data=body % odd, headers=headers) as response:
            states.append(response.headers.get("x-gw-idempotency"))
        await is_kept(gateway)

    assert states == ["NEW", "REPLAY", None]


async def test_other_keys_and_requests_without_one_make_calls_of_their_own(
    gateway: Gateway, upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    await ask(http, gateway)
    await is_kept(gateway)

    await ask(http, gateway, key="another")
    plain, _ = await post(http, gateway.base_url, chat("hi"))

    assert upstream.calls == 3
    assert "x-gw-idempotency" not in plain.headers


async def test_a_client_never_gets_the_answer_of_another(
    start: Start, config: dict[str, Any], upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    clients = [
        {"id": name, "key_sha256": sha256(f"sk-{name}".encode()).hexdigest()} for name in "ab"
    ]
    gateway = await start(**config, auth={"mode": "keys"}, clients=clients)

    answers = []
    for name in "aba":
        headers = {"Authorization": f"Bearer sk-{name}", "Idempotency_Key": KEY}
        response, _ = await post(http, gateway.base_url, chat("hi"), **headers)
        answers.append(response.headers["x-routed-via"])
        await until_soon(lambda: counted(gateway, "kept") == counted(gateway, "taken"))

    assert answers == ["p/m", "p/m", "idempotency"]


@pytest.mark.parametrize(("status", "finish"), [(500, "stop"), (400, "stop"), (200, "length")])
@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_no_whole_answer_is_not_kept(
    status: int,
    finish: str,
    stream: bool,
    gateway: Gateway,
    upstream: SteppedUpstream,
    http: aiohttp.ClientSession,
) -> None:
    upstream.status, upstream.finish = status, finish
    first, _ = await ask(http, gateway, stream=stream)
    upstream.status, upstream.finish = 200, "stop"

    again, body = await ask(http, gateway, text="hi, again", stream=stream)

    assert (first.status == 200) is (status == 200)
    assert (again.status, upstream.calls) == (200, 2)
    assert again.headers["x-gw-idempotency"] == "NEW"
    assert b"there" in body


@pytest.mark.parametrize(
    ("cache", "result"),
    [({"max_entry_mb": 0.0001}, "too_large"), ({"idempotency": {"max_mb": 0.0001}}, "over_budget")],
)
async def test_what_is_larger_than_may_be_is_served_and_not_kept(
    cache: dict[str, Any],
    result: str,
    start: Start,
    config: dict[str, Any],
    upstream: SteppedUpstream,
    http: aiohttp.ClientSession,
) -> None:
    gateway = await start(**config, cache=cache)
    await ask(http, gateway)
    await until_soon(lambda: counted(gateway, result) == 1)

    again, body = await ask(http, gateway)

    assert (again.headers["x-gw-idempotency"], upstream.calls) == ("NEW", 2)
    assert b"there" in body


async def test_where_it_is_switched_off_every_request_is_a_call(
    start: Start, config: dict[str, Any], upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**config, cache={"idempotency": {"enabled": False}})

    states = [(await ask(http, gateway))[0].headers["x-gw-idempotency"] for _ in range(2)]

    assert (states, upstream.calls) == (["OFF", "OFF"], 2)


@pytest.mark.parametrize("stream", [False, True])
async def test_who_asks_meanwhile_waits_for_that_one_call(
    stream: bool, gateway: Gateway, upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.stops_at = 0
    asking = [asyncio.create_task(ask(http, gateway, stream=stream)) for _ in range(5)]
    await is_waited_for(gateway, 5)

    upstream.go.set()
    answers = await asyncio.gather(*asking)

    assert upstream.calls == 1
    assert {body for _, body in answers} == {answers[0][1]}
    states = sorted(response.headers["x-gw-idempotency"] for response, _ in answers)
    assert states == ["NEW", *["REPLAY"] * 4]


async def test_a_stream_is_handed_on_while_it_comes(
    gateway: Gateway, upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.stops_at = 2
    url = f"{gateway.base_url}/v1/chat/completions"
    body, headers = chat("hi", stream=True), {"Idempotency-Key": KEY}
    async with http.post(url, json=body, headers=headers) as first:
        start = await first.content.readuntil(b"Hello ")
        async with http.post(url, json=body, headers=headers) as second:
            early = await second.content.readuntil(b"there ")
            upstream.go.set()
            late = await second.content.read()
        rest = await first.content.read()

    assert upstream.calls == 1
    assert first.headers["x-gw-idempotency"] == "NEW"
    assert second.headers["x-gw-idempotency"] == "REPLAY"
    assert early + late == start + rest
    assert b"[DONE]" in late


async def test_a_client_that_leaves_finds_the_whole_answer_later(
    gateway: Gateway, upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.stops_at = 2
    url = f"{gateway.base_url}/v1/chat/completions"
    body = chat("hi", stream=True)
    async with http.post(url, json=body, headers={"Idempotency-Key": KEY}) as leaving:
        await leaving.content.readuntil(b"Hello ")
        leaving.close()
    await until_soon(lambda: gateway.registry.value(catalog.CLIENT_GONE, "awaited") == 1)
    upstream.go.set()
    await is_kept(gateway)

    again, text = await ask(http, gateway, stream=True)

    assert (upstream.calls, upstream.left) == (1, 0)
    assert again.headers["x-gw-idempotency"] == "REPLAY"
    assert text.endswith(b"data: [DONE]\n\n")


async def test_who_waits_makes_the_call_itself_when_the_first_one_fails(
    gateway: Gateway, upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.stops_at, upstream.status = 0, 400
    first = asyncio.create_task(ask(http, gateway))
    await until_soon(lambda: upstream.calls == 1)
    second = asyncio.create_task(ask(http, gateway))
    await is_waited_for(gateway, 2)
    upstream.go.set()
    (failed, _) = await first
    upstream.status = 200

    answered, body = await second

    assert (failed.status, answered.status, upstream.calls) == (400, 200, 2)
    assert answered.headers["x-gw-idempotency"] == "NEW"
    assert b"there" in body


async def test_a_stream_that_breaks_breaks_for_all_and_is_never_joined_to_another(
    gateway: Gateway, upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.stops_at, upstream.breaks = 2, True
    url = f"{gateway.base_url}/v1/chat/completions"
    body, headers = chat("hi", stream=True), {"Idempotency-Key": KEY}
    async with http.post(url, json=body, headers=headers) as first:
        await first.content.readuntil(b"there ")
        async with http.post(url, json=body, headers=headers) as second:
            await second.content.readuntil(b"there ")
            upstream.go.set()
            rest = await second.content.read()
        await first.content.read()
    upstream.breaks = False
    again, text = await ask(http, gateway, stream=True)

    assert b"stream_interrupted" in rest
    assert b"[DONE]" not in rest
    assert (again.headers["x-gw-idempotency"], upstream.calls) == ("NEW", 2)
    assert text.endswith(b"data: [DONE]\n\n")


async def test_who_waits_is_held_to_its_own_deadline(
    gateway: Gateway, upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.stops_at = 0
    first = asyncio.create_task(ask(http, gateway))
    await until_soon(lambda: upstream.calls == 1)

    late, body = await post(
        http, gateway.base_url, chat("hi"), Idempotency_Key=KEY, X_Gw_Timeout="0.2s"
    )

    upstream.go.set()
    await first
    assert late.status == 504
    assert b"deadline_exceeded" in body


@pytest.mark.parametrize("key", ["", " ", "x" * 256])
async def test_a_key_that_cannot_be_one_is_refused(
    key: str, gateway: Gateway, upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    response, body = await ask(http, gateway, key=key)

    assert (response.status, upstream.calls) == (400, 0)
    assert b"Idempotency-Key" in body


async def test_without_redis_each_request_is_served_and_says_that_nothing_is_kept(
    config: dict[str, Any],
    upstream: SteppedUpstream,
    server: RedisServer,
    http: aiohttp.ClientSession,
) -> None:
    nowhere = "redis://127.0.0.1:9"
    async with Gateway(config, server.url, prefix="none", cache_url=nowhere) as gateway:
        answers = [await ask(http, gateway, stream=stream) for stream in (False, True)]

    assert [response.status for response, _ in answers] == [200, 200]
    assert [response.headers["x-gw-idempotency"] for response, _ in answers] == ["OFF", "OFF"]
    assert upstream.calls == 2


@pytest.mark.parametrize("garbage", ["string", "state", "answer", "until"])
async def test_records_that_somebody_else_wrote_are_passed_by(
    garbage: str,
    config: dict[str, Any],
    upstream: SteppedUpstream,
    server: RedisServer,
    http: aiohttp.ClientSession,
) -> None:
    prefix = f"trash{garbage}"
    async with Gateway(config, server.url, prefix=prefix) as gateway:
        await ask(http, gateway)
        await is_kept(gateway)
        name = record_of(server, prefix)
        if garbage == "string":
            server.command("SET", name, "x")
        elif garbage == "until":
            server.command("HSET", name, "until", "x", "state", "held")
        else:
            server.command("HSET", name, garbage, "x")

        response, _ = await ask(http, gateway)

    assert (response.status, upstream.calls) == (200, 2)
    assert response.headers["x-gw-idempotency"] == ("NEW" if garbage == "state" else "OFF")


async def test_records_are_sealed_and_name_neither_key_nor_words(
    config: dict[str, Any],
    upstream: SteppedUpstream,
    server: RedisServer,
    http: aiohttp.ClientSession,
) -> None:
    environ = {"GW_MASTER_KEY": MASTER_KEY}
    async with Gateway(config, server.url, prefix="shut", environ=environ) as gateway:
        _, body = await ask(http, gateway, stream=True)
        await is_kept(gateway)
        again, repeated = await ask(http, gateway, stream=True)
        name = record_of(server, "shut")
        raw = server.command("HGETALL", name)
        life_ms = int(server.command("PTTL", name).strip(b":\r\n"))

    assert (again.headers["x-gw-idempotency"], repeated) == ("REPLAY", body)
    assert b"there" not in raw
    assert b"event-stream" not in raw
    assert KEY not in name
    assert 86_000_000 < life_ms <= 86_400_000
    assert upstream.calls == 1


async def test_call_is_repeated_from_its_record_after_the_master_key_was_replaced(
    config: dict[str, Any],
    upstream: SteppedUpstream,
    server: RedisServer,
    http: aiohttp.ClientSession,
) -> None:
    environ = {"GW_MASTER_KEY": MASTER_KEY}
    async with Gateway(config, server.url, prefix="moved", environ=environ) as gateway:
        _, body = await ask(http, gateway)
        await is_kept(gateway)
    environ = {"GW_MASTER_KEY": "cd" * 32, "GW_MASTER_KEY_PREVIOUS": MASTER_KEY}
    async with Gateway(config, server.url, prefix="moved", environ=environ) as gateway:
        again, repeated = await ask(http, gateway)

    assert (again.headers["x-gw-idempotency"], repeated) == ("REPLAY", body)
    assert upstream.calls == 1


def record_of(server: RedisServer, prefix: str) -> str:
    """The name of the only record."""
    (name,) = [
        line
        for line in server.command("KEYS", f"{prefix}:ik:*").decode().split("\r\n")
        if line.startswith(prefix)
    ]
    return name
