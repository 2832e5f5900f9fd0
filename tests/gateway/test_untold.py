"""Requests that one dialect takes and another has no words for: an answer or a 400, never a 500."""

from collections.abc import AsyncIterator

import aiohttp
import msgspec
import pytest

from tests.fakes.gateway import Gateway
from tests.fakes.gemini_upstream import GeminiUpstream
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post

SCHEMAS = {
    "number above all": b'{"type":"object","maximum":1e999}',
    "format that is a list": b'{"type":"string","format":[]}',
    "format that is an object": b'{"type":"number","format":{}}',
    "types in a list": b'{"type":["string",7]}',
    "no object": b'"x"',
    "deep": b'{"type":"array","items":' * 900 + b"{}" + b"}" * 900,
}


@pytest.fixture
async def upstream() -> AsyncIterator[GeminiUpstream]:
    async with GeminiUpstream() as running:
        yield running


@pytest.fixture
async def gateway(start: Start, upstream: GeminiUpstream) -> Gateway:
    return await start(
        providers={"g": {"dialect": "gemini", "base_url": upstream.base_url}},
        keys=[{"id": "g1", "provider": "g", "secret": "AIza-secret-of-g1"}],
        models=[{"provider": "g", "model": "gemini-3-pro"}],
    )


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
async def test_schema_that_cannot_be_said_is_no_fault_of_ours(
    gateway: Gateway, http: aiohttp.ClientSession, schema: bytes
) -> None:
    tool = {
        "type": "function",
        "function": {"name": "f", "parameters": msgspec.Raw(schema)},
    }

    sent = msgspec.json.encode(chat(tools=[tool]))
    async with http.post(f"{gateway.base_url}/v1/chat/completions", data=sent) as response:
        body = await response.read()

    assert response.status in {200, 400}, body
    if response.status == 400:
        error = msgspec.json.decode(body)["error"]
        assert (error["type"], bool(error["message"])) == ("invalid_request_error", True)


async def test_thousands_of_members_that_nobody_knows_are_counted_and_not_all_named(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    body = {**chat(), **{f"member_{number}": 0 for number in range(20_000)}}

    response, _ = await post(http, gateway.base_url, body)

    warnings = response.headers["x-gw-warnings"].split("; ")
    assert response.status == 200
    assert warnings[0] == "dropped member_0"
    assert warnings[-1] == "and 19968 more"
