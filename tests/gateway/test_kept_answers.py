"""Answers that an upstream keeps: who may go on from them, and where that is served."""

import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import redis.asyncio

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway
from tests.fakes.redis_server import RedisServer
from tests.fakes.responses_upstream import ResponsesUpstream
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.test_responses import events_of, respond, with_upstream


@pytest.fixture
async def upstream() -> AsyncIterator[ResponsesUpstream]:
    async with ResponsesUpstream() as running:
        yield running


async def with_two_keys(start: Start, upstream: ResponsesUpstream, **sections: Any) -> Gateway:
    """A worker that takes the two keys of its provider in turn."""
    provider = {"dialect": "openai-responses", "base_url": upstream.base_url}
    return await start(
        providers={"a": provider},
        keys=[
            {"id": "a1", "provider": "a", "secret": "secret-of-a1"},
            {"id": "a2", "provider": "a", "secret": "secret-of-a2"},
        ],
        models=[{"provider": "a", "model": "one"}, {"provider": "a", "model": "two"}],
        **sections,
    )


async def kept(
    http: aiohttp.ClientSession, gateway: Gateway, *, stream: bool = False, **members: Any
) -> tuple[str, bytes]:
    """An answer's id, and the whole of it."""
    response, body = await respond(http, gateway, "keep", stream=stream, **members)
    assert response.status == 200, body
    answer = events_of(body)[-1]["response"] if stream else json.loads(body)
    return answer["id"], body


@pytest.mark.parametrize("stream", [False, True])
async def test_what_goes_on_from_an_answer_reaches_the_key_that_keeps_it(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream, stream: bool
) -> None:
    gateway = await with_two_keys(start, upstream)
    firsts = [await kept(http, gateway, stream=stream) for _ in range(2)]
    made_by = [headers["authorization"] for headers in upstream.headers]

    for (name, _), key in zip(firsts * 3, made_by * 3, strict=True):
        _, body = await kept(http, gateway, stream=stream, previous_response_id=name)

        assert b"resp_kept_" in body
        assert upstream.requests[-1]["previous_response_id"] == name
        assert upstream.headers[-1]["authorization"] == key
    assert len(set(made_by)) == 2


async def test_what_goes_on_from_an_answer_goes_to_its_model_first(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    gateway = await with_two_keys(start, upstream)
    name, _ = await kept(http, gateway, model="a/two")

    response, _ = await respond(http, gateway, "keep", previous_response_id=name)
    other, _ = await respond(http, gateway, "keep", previous_response_id=name, model="a/one")

    assert response.headers["x-routed-via"] == "a/two"
    assert other.headers["x-routed-via"] == "a/one"


async def test_any_worker_knows_who_keeps_an_answer(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    one = await with_two_keys(start, upstream, prefix="kept")
    other = await with_two_keys(start, upstream, prefix="kept")
    name, _ = await kept(http, one)

    response, _ = await respond(http, other, "keep", previous_response_id=name)

    assert response.status == 200


async def test_answer_of_another_client_is_not_found(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    names = ("app", "other")
    digests = {name: hashlib.sha256(f"key-of-{name}".encode()).hexdigest() for name in names}
    gateway = await with_two_keys(
        start,
        upstream,
        auth={"mode": "keys"},
        clients=[{"id": name, "key_sha256": digests[name]} for name in names],
    )

    async def ask(client: str, **members: Any) -> tuple[int, Any]:
        body = {"model": "auto", "input": "keep", **members}
        head = {"authorization": f"Bearer key-of-{client}"}
        async with http.post(f"{gateway.base_url}/v1/responses", json=body, headers=head) as got:
            return got.status, await got.json()

    _, first = await ask("app")
    own, _ = await ask("app", previous_response_id=first["id"])
    foreign, error = await ask("other", previous_response_id=first["id"])

    assert (own, foreign) == (200, 404)
    assert error["error"]["code"] == "response_not_found"
    assert len(upstream.requests) == 2


@pytest.mark.parametrize("members", [{"store": False}, {"model": "b/two"}])
async def test_answer_that_nobody_keeps_is_not_found(
    start: Start,
    http: aiohttp.ClientSession,
    upstream: ResponsesUpstream,
    simulator: RunningSimulator,
    members: dict[str, Any],
) -> None:
    native = {"dialect": "openai-responses", "base_url": upstream.base_url}
    gateway = await start(
        providers={"a": native, "b": {"dialect": "openai", "base_url": simulator.base_url}}
    )
    name, _ = await kept(http, gateway, **members)

    response, body = await respond(http, gateway, "keep", previous_response_id=name)

    assert response.status == 404
    assert json.loads(body)["error"]["param"] == "previous_response_id"


async def test_model_that_the_key_does_not_serve_cannot_go_on(
    start: Start,
    http: aiohttp.ClientSession,
    upstream: ResponsesUpstream,
    simulator: RunningSimulator,
) -> None:
    native = {"dialect": "openai-responses", "base_url": upstream.base_url}
    gateway = await start(
        providers={"a": native, "b": {"dialect": "openai", "base_url": simulator.base_url}}
    )
    name, _ = await kept(http, gateway)

    response, _ = await respond(http, gateway, "x", previous_response_id=name, model="b/two")

    assert response.status == 404


async def test_failure_of_the_keeper_is_told_and_nobody_else_is_asked(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    gateway = await with_two_keys(start, upstream)
    name, _ = await kept(http, gateway, model="a/one")
    key = upstream.headers[-1]["authorization"]

    response, body = await respond(http, gateway, "500", previous_response_id=name, model="a/one")

    assert response.status == 502
    assert len(json.loads(body)["error"]["attempts"]) == 1
    assert {headers["authorization"] for headers in upstream.headers} == {key}


async def test_answer_that_is_gone_upstream_is_not_found_and_takes_no_model_out(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    gateway = await with_upstream(start, upstream)
    name, _ = await kept(http, gateway)

    for _ in range(4):
        response, body = await respond(http, gateway, "gone", previous_response_id=name)
        assert (response.status, json.loads(body)["error"]["code"]) == (404, "response_not_found")

    after, _ = await respond(http, gateway, "say")
    assert after.status == 200


async def test_without_redis_nobody_goes_on_and_the_next_request_is_served(
    durable_server: RedisServer, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    config = {
        "providers": {"a": {"dialect": "openai-responses", "base_url": upstream.base_url}},
        "keys": [{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
        "models": [{"provider": "a", "model": "one"}],
        "combos": [{"id": "auto", "family": "classic", "members": "all"}],
        "default_combo": "auto",
    }
    async with Gateway(config, durable_server.url) as gateway:
        name, _ = await kept(http, gateway)
        durable_server.kill()
        await until_soon(lambda: gateway.engine.is_alone and not gateway.engine.is_redis_used)

        lost, body = await respond(http, gateway, "keep", previous_response_id=name)
        plain, _ = await respond(http, gateway, "keep")

        assert (lost.status, json.loads(body)["error"]["code"]) == (503, "redis_lost")
        assert plain.status == 200
        durable_server.start()
        await until_soon(lambda: not gateway.engine.is_alone)
        assert await gateway.engine.settle() == 0


async def test_record_in_redis_tells_neither_the_id_nor_the_client(
    redis_url: str, start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    gateway = await with_upstream(start, upstream, prefix="told")
    name, _ = await kept(http, gateway)

    async with redis.asyncio.Redis.from_url(redis_url) as client:
        [key] = [key async for key in client.scan_iter("told:rsp:*")]
        record, ttl_s = await client.hgetall(key), await client.ttl(key)

    assert name.encode() not in key
    assert record[b"route"] == b"a/one a1"
    assert 86_000 < ttl_s <= 86_400


async def test_explanation_names_the_key_that_would_be_asked(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    gateway = await with_two_keys(start, upstream)
    name, _ = await kept(http, gateway, model="a/one")
    used = upstream.headers[-1]["authorization"].removeprefix("Bearer secret-of-")
    asked = {"model": "a/one", "input": "keep", "previous_response_id": name}

    async with gateway.admin() as admin:
        answer = await admin.post("/api/explain", json={"request": asked, "surface": "responses"})
        asked["previous_response_id"] = "resp_unknown"
        lost = await admin.post("/api/explain", json={"request": asked, "surface": "responses"})

    assert (lost.status_code, lost.json()["error"]["code"]) == (404, "response_not_found")
    [route] = answer.json()["ranking"]
    assert [key["id"] for key in route["keys"]] == [used]
