"""Idempotency keys beside the response cache, and over each API."""

import asyncio
from typing import Any, Final

import aiohttp
import pytest

from tests.fakes.gateway import Gateway
from tests.fakes.stepped_upstream import SteppedUpstream
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post
from tests.gateway.test_idempotency import KEY, ask, config, gateway, is_kept, upstream

__all__ = ["config", "gateway", "upstream"]
PATIENCE_S: Final = 10.0  # a third of the time that who follows waits


async def test_a_call_of_its_own_may_be_answered_by_the_cache(
    start: Start, config: dict[str, Any], upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**config, cache={"enabled": True})
    first, body = await ask(http, gateway, "one")
    await is_kept(gateway)

    other, same = await ask(http, gateway, "other")
    await is_kept(gateway, 2)
    again, third = await ask(http, gateway, "other")

    states = [one.headers["x-gw-idempotency"] for one in (first, other, again)]
    assert states == ["NEW", "NEW", "REPLAY"]
    assert other.headers["x-gw-cache"] in {"HIT", "COALESCED"}
    assert (upstream.calls, body == same == third) == (1, True)


async def test_who_waits_for_a_key_holds_up_nobody_in_the_cache(
    start: Start, config: dict[str, Any], upstream: SteppedUpstream, http: aiohttp.ClientSession
) -> None:
    """Else two requests might wait for each other."""
    gateway = await start(**config, cache={"enabled": True})
    upstream.stops_at = 0
    url, headers = gateway.base_url, {"Idempotency_Key": KEY}
    first = asyncio.create_task(post(http, url, chat(), X_Gw_Cache="off", **headers))
    await until_soon(lambda: upstream.calls == 1)
    second = asyncio.create_task(post(http, url, chat(), **headers))
    await until_soon(lambda: gateway.current.in_flight == 2)
    upstream.stops_at = None

    third, _ = await asyncio.wait_for(post(http, url, chat()), PATIENCE_S)

    assert third.headers["x-gw-cache"] == "MISS"
    upstream.go.set()
    states = [(await one)[0].headers["x-gw-idempotency"] for one in (first, second)]
    assert (states, upstream.calls) == (["NEW", "REPLAY"], 2)


async def test_a_conflict_is_told_in_the_shape_of_each_api(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    headers = {"Idempotency-Key": KEY, "anthropic-version": "2023-06-01"}
    url = f"{gateway.base_url}/v1/messages"
    for text in ("hi", "another"):
        said = [{"role": "user", "content": text}]
        body = {"model": "auto", "max_tokens": 900, "messages": said}
        async with http.post(url, json=body, headers=headers) as response:
            error = await response.json()
        await is_kept(gateway)

    assert response.status == 409
    assert error["type"] == "error"
    assert error["error"]["code"] == "idempotency_key_conflict"


@pytest.mark.parametrize("path", ["responses", "messages", "completions", "embeddings", "gemini"])
async def test_every_api_has_it(path: str, start: Start, http: aiohttp.ClientSession) -> None:
    embed = {"provider": "a", "model": "embed", "embedding": {}}
    models = [{"provider": "a", "model": "one"}, embed]
    gateway = await start(models=models)
    said = {"role": "user", "content": "hi"}
    url, body = {
        "responses": ("/v1/responses", {"model": "auto", "input": "hi"}),
        "messages": ("/v1/messages", {"model": "auto", "max_tokens": 900, "messages": [said]}),
        "completions": ("/v1/completions", {"model": "auto", "prompt": "hi", "stream": True}),
        "embeddings": ("/v1/embeddings", {"model": "a/embed", "input": "hi"}),
        "gemini": (
            "/v1beta/models/auto:streamGenerateContent?alt=sse",
            {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
        ),
    }[path]
    headers = {"Idempotency-Key": KEY, "anthropic-version": "2023-06-01"}
    answers = []
    for _ in range(2):
        async with http.post(gateway.base_url + url, json=body, headers=headers) as response:
            answers.append((response.status, await response.read()))
            state = response.headers["x-gw-idempotency"]
        await is_kept(gateway)

    assert answers[0] == answers[1]
    assert answers[0][0] == 200
    assert state == "REPLAY"


async def test_a_stream_of_events_is_not_repeated_as_an_array(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    url = f"{gateway.base_url}/v1beta/models/auto:streamGenerateContent"
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    statuses = []
    for query in ("?alt=sse", "", "?alt=sse"):
        async with http.post(url + query, json=body, headers={"Idempotency-Key": KEY}) as response:
            statuses.append(response.status)
        await is_kept(gateway)

    assert statuses == [200, 409, 200]
