"""Each API from each kind of upstream: an answer of the cache is what the live one was."""

from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from tests.fakes.every_dialect import EveryDialect
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start

PROVIDERS: Final = ("openai", "openai-responses", "anthropic", "gemini")
TALK: Final = [{"role": "user", "content": "hello"}]
SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}}
CHAT_TOOL: Final = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
GEMINI_TOOL: Final = {"functionDeclarations": [{"name": "weather", "parameters": SCHEMA}]}
BODIES: Final[dict[str, dict[str, Any]]] = {
    "/v1/chat/completions": {"messages": TALK, "tools": [CHAT_TOOL]},
    "/v1/completions": {"prompt": "hello"},
    "/v1/messages": {
        "messages": TALK,
        "max_tokens": 99,
        "tools": [{"name": "weather", "input_schema": SCHEMA}],
    },
    "/v1/responses": {
        "input": "hello",
        "store": False,
        "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}],
    },
    ":generateContent": {"contents": [{"parts": [{"text": "hello"}]}], "tools": [GEMINI_TOOL]},
}
OWN: Final = {
    "/v1/chat/completions": "openai",
    "/v1/completions": "openai",
    "/v1/messages": "anthropic",
    "/v1/responses": "openai-responses",
    ":generateContent": "gemini",
}
OF_REQUEST: Final = ("id", "created", "created_at", "createTime", "responseId", "completed_at")
"""What is of the moment where an answer is written anew."""


@pytest.fixture
async def upstream() -> AsyncIterator[EveryDialect]:
    async with EveryDialect() as running:
        yield running


@pytest.fixture
async def gateway(start: Start, upstream: EveryDialect) -> Gateway:
    return await start(
        providers={
            name: {"dialect": name, "base_url": upstream.base_url(name)} for name in PROVIDERS
        },
        keys=[{"id": f"{name}-1", "provider": name, "secret": "s"} for name in PROVIDERS],
        models=[
            *(
                {"provider": name, "model": model}
                for name in PROVIDERS
                for model in ("say", "call")
            ),
            {"provider": "openai", "model": "embed", "embedding": {"dimensions": 3}},
        ],
        cache={"enabled": True},
    )


async def ask(
    http: aiohttp.ClientSession, gateway: Gateway, path: str, model: str, *, stream: bool
) -> tuple[str, bytes]:
    """What the cache was to a request, and the answer, once it is stored."""
    body = dict(BODIES[path])
    if path.startswith(":"):
        call = ":streamGenerateContent?alt=sse" if stream else path
        url = f"{gateway.base_url}/v1beta/models/{model}{call}"
    else:
        url = f"{gateway.base_url}{path}"
        body |= {"model": model, "stream": stream}
    headers = {"anthropic-version": "2023-06-01"} if path == "/v1/messages" else {}
    async with http.post(url, json=body, headers=headers) as response:
        answer = await response.read()
    await gateway.engine.caches.settle()
    assert response.status == 200, answer
    return response.headers["X-Gw-Cache"], answer


def lasting(answer: bytes) -> list[Any]:
    """The documents of an answer without what is of the moment."""
    documents = [
        msgspec.json.decode(line.removeprefix(b"data: "))
        for line in answer.split(b"\n")
        if line[:1] in (b"{", b"[") or line[:7] == b"data: {"
    ]
    return [without(one) for one in documents]


def without(one: Any) -> Any:
    if isinstance(one, dict):
        return {k: without(v) for k, v in one.items() if k not in OF_REQUEST and k != "item_id"}
    return [without(inner) for inner in one] if isinstance(one, list) else one


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("path", BODIES)
async def test_a_hit_is_what_the_live_answer_was(
    path: str,
    provider: str,
    gateway: Gateway,
    upstream: EveryDialect,
    http: aiohttp.ClientSession,
) -> None:
    for model in ("say",) if path == "/v1/completions" else ("say", "call"):
        for stream in (False, True):
            asked = upstream.asked[provider]
            name = f"{provider}/{model}"
            live = await ask(http, gateway, path, name, stream=stream)
            again = await ask(http, gateway, path, name, stream=stream)
            assert again[0] == "HIT", (path, name, stream)
            assert lasting(again[1]) == lasting(live[1])
            if provider == OWN[path] and path != "/v1/completions":
                assert again[1] == live[1]
            assert upstream.asked[provider] - asked <= 1


async def test_vectors_are_kept_too(
    gateway: Gateway, upstream: EveryDialect, http: aiohttp.ClientSession
) -> None:
    told = []
    for form in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        body = {"model": "openai/embed", "input": ["a", "b"], **form}
        async with http.post(f"{gateway.base_url}/v1/embeddings", json=body) as response:
            told.append((response.headers["X-Gw-Cache"], await response.json()))
        await gateway.engine.caches.settle()

    assert [cache for cache, _ in told] == ["MISS", "HIT", "MISS"]
    assert told[0][1] == told[1][1]
    assert upstream.asked["openai"] == 2


async def test_an_answer_that_its_vendor_keeps_is_nobody_elses(
    gateway: Gateway, upstream: EveryDialect, http: aiohttp.ClientSession
) -> None:
    told = []
    for provider in ("openai-responses", "openai"):
        for _ in range(2):
            body = {"model": f"{provider}/say", "input": "hello"}
            async with http.post(f"{gateway.base_url}/v1/responses", json=body) as response:
                told.append(response.headers["X-Gw-Cache"])
            await gateway.engine.caches.settle()

    assert told == ["OFF", "OFF", "MISS", "HIT"]
