"""Secrets, prompts and answers stay where they belong."""

import json
from hashlib import sha256
from typing import Any, Final

import aiohttp
import pytest

from tests.fakes.gateway import Gateway
from tests.fakes.listening import listening
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_snapshot import build

DETAIL: Final = "x-fallback-detail"  # asked for by the client that wrote the prompt
QUOTE: Final = "the-words-of-a-prompt"


async def test_what_an_upstream_writes_about_the_prompt_is_not_logged(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    body = {"error": {"message": "cannot answer: the-prompt", "type": "server_error"}}
    text = steer(fault={"kind": "status", "code": 500, "body": body})

    _, answer = await post(http, gateway.base_url, chat(text))

    assert b"the-prompt" in answer
    assert "the-prompt" not in json.dumps(gateway.events())


async def test_the_key_of_another_provider_is_struck_out_too(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(models=[{"provider": "a", "model": "one"}])
    body = {"error": {"message": "seen secret-of-b1 here", "type": "server_error"}}
    text = steer(fault={"kind": "status", "code": 500, "body": body})

    response, answer = await post(http, gateway.base_url, chat(text), X_Gw_Detail="1")

    assert b"secret-of-b1" not in answer
    assert "secret-of-b1" not in str(response.headers)
    assert b"seen" in answer


def told(**members: str) -> dict[str, Any]:
    """An error body in which every member quotes the prompt."""
    return {"error": {"message": QUOTE, "type": QUOTE, "code": QUOTE, "param": QUOTE} | members}


STATUSES: Final = {
    f"status {code}": {
        "kind": "status",
        "code": code,
        "body": told(),
        "headers": {
            "x-ratelimit-remaining-requests": QUOTE,
            "x-request-id": QUOTE,
            "retry-after": QUOTE,
        },
    }
    for code in (400, 401, 402, 403, 404, 408, 410, 413, 422, 429, 500, 503)
}
QUOTING: Final[dict[str, dict[str, Any]]] = {
    **STATUSES,
    "removed": {
        "kind": "status",
        "code": 404,
        "body": told(message=f"The model has been removed: {QUOTE}"),
    },
    "no JSON": {"kind": "status", "code": 500, "body": QUOTE},
    "page": {"kind": "wrong_content_type", "body": f"<html>{QUOTE}</html>"},
    "redirect": {"kind": "redirect", "location": f"/{QUOTE}"},
    "no HTTP": {"kind": "raw_reply", "data": f"{QUOTE}\r\n\r\n"},
    "reason": {"kind": "raw_reply", "data": f"HTTP/1.1 500 {QUOTE}\r\ncontent-length: 0\r\n\r\n"},
    "broken JSON": {"kind": "malformed_json", "payload": f'{{"{QUOTE}'},
    "in an answer": {"kind": "in_band_error", "error": told()["error"]},
    "in a stream": {"kind": "in_band_error", "error": told()["error"], "at_frame": 2},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", QUOTING)
async def test_a_prompt_that_a_provider_quotes_reaches_the_client_that_wrote_it_and_nobody_else(
    start: Start, http: aiohttp.ClientSession, redis_url: str, name: str, stream: bool
) -> None:
    gateway = await start(
        auth={"mode": "keys"},
        clients=[
            {"id": one, "key_sha256": sha256(one.encode()).hexdigest(), "detail": True}
            for one in ("writer", "other")
        ],
    )
    channel = f"{gateway.settings.redis.prefix}:events"
    async with listening(redis_url, channel=channel) as (bus, heard):
        await until_soon(lambda: bus.is_up)
        text = steer(id=name, fault=QUOTING[name], times=2)
        writer, own = await post(
            http, gateway.base_url, chat(text, stream=stream), x_api_key="writer", X_Gw_Detail="1"
        )
        await gateway.engine.settle()
        other, theirs = await post(
            http, gateway.base_url, chat(), x_api_key="other", X_Gw_Detail="1"
        )
        await gateway.engine.settle()
        await build(gateway)

    gateway.log.flush()
    elsewhere = {
        "its headers": str([pair for pair in writer.headers.items() if pair[0].lower() != DETAIL]),
        "the other's headers": str(other.headers),
        "the other's answer": theirs.decode(),
        "the log": gateway.stream.getvalue().decode(),
        "metrics": str(gateway.registry.snapshot()),
        "redis": await everything(gateway),
        "events": b"".join(heard.texts).decode(),
    }
    assert [place for place, found in elsewhere.items() if QUOTE in found] == []
    assert "request.finished" in elsewhere["the log"]
    assert "snapshot" in elsewhere["events"]
    if name in STATUSES and not stream:
        assert QUOTE in own.decode(), "what it wrote itself may come back to it"


async def everything(gateway: Gateway) -> str:
    """All keys and values of a worker in Redis."""
    call, stored = gateway.engine.redis.call, ""
    for key in await call("KEYS", f"{gateway.settings.redis.prefix}:*"):
        kind = await call("TYPE", key)
        read = {b"hash": ("HGETALL", key), b"zset": ("ZRANGE", key, 0, -1)}.get(kind, ("GET", key))
        stored += str(key) + str(await call(*read))
    return stored


async def test_no_redis_key_or_value_holds_a_secret_a_prompt_or_an_answer(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    await post(
        http,
        gateway.base_url,
        chat(steer(text="the-answer") + " the-prompt"),
        Authorization="Bearer sk-client-key",
    )
    await gateway.engine.settle()

    stored = await everything(gateway)

    assert ":w:" in stored, "the windows must be among what was read"
    for secret in ("secret-of-a1", "the-prompt", "the-answer", "sk-client-key"):
        assert secret not in stored
