"""Upstreams of Anthropic's dialect behind the APIs of both vendors."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.fakes.anthropic_frames import events_of, text_of
from tests.fakes.anthropic_upstream import AnthropicUpstream, message, streamed, text
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat
from tests.gateway.test_messages import TOOL, ask, post

CALL = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Köln"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}


@pytest.fixture
async def upstream() -> AsyncIterator[AnthropicUpstream]:
    async with AnthropicUpstream() as running:
        yield running


async def began(start: Start, upstream: AnthropicUpstream, **sections: Any) -> Gateway:
    return await start(
        providers={"claude": {"dialect": "anthropic", "base_url": upstream.base_url}},
        keys=[{"id": "c1", "provider": "claude", "secret": "sk-ant-secret"}],
        models=[{"provider": "claude", "model": "claude-up", "vision": True}],
        **sections,
    )


async def completed(
    http: aiohttp.ClientSession, gateway: Gateway, body: dict[str, Any]
) -> tuple[aiohttp.ClientResponse, bytes]:
    url = f"{gateway.base_url}/v1/chat/completions"
    async with http.post(url, json=body) as response:
        return response, await response.read()


async def test_message_reaches_its_own_vendor_as_it_is(
    start: Start, http: aiohttp.ClientSession, upstream: AnthropicUpstream
) -> None:
    gateway = await began(start, upstream)
    block = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    body = ask([block], top_k=3, x_new={"a": [1]}, mcp_servers=[], tools=[TOOL])

    response, raw = await post(http, gateway.base_url, body, anthropic_beta="one-2025,two")

    assert response.status == 200
    assert msgspec.json.decode(raw) == upstream.answer
    assert upstream.bodies == [{**body, "model": "claude-up"}]
    assert upstream.paths == ["/v1/messages"]
    sent = upstream.headers[0]
    assert sent["x-api-key"] == "sk-ant-secret"
    assert sent["anthropic-version"] == "2023-06-01"
    assert sent["anthropic-beta"] == "one-2025,two"
    assert "authorization" not in sent
    assert "x-gw-warnings" not in response.headers


async def test_repeated_lines_of_features_are_all_passed_on(
    start: Start, http: aiohttp.ClientSession, upstream: AnthropicUpstream
) -> None:
    gateway = await began(start, upstream)
    lines = [("anthropic-beta", "one-2025"), ("anthropic-beta", "two")]
    lines.append(("anthropic-version", "2023-06-01"))

    url = f"{gateway.base_url}/v1/messages"
    async with http.post(url, json=ask("hi"), headers=lines) as response:
        assert response.status == 200

    assert upstream.headers[0]["anthropic-beta"] == "one-2025,two"


async def test_the_version_is_that_of_the_client_where_it_speaks_this_dialect(
    start: Start, http: aiohttp.ClientSession, upstream: AnthropicUpstream
) -> None:
    gateway = await began(start, upstream)
    new = {"anthropic-version": "2026-10-21"}
    chat = {"messages": [{"role": "user", "content": "hi"}]}

    await http.post(f"{gateway.base_url}/v1/messages", json=ask("hi"), headers=new)
    await http.post(f"{gateway.base_url}/v1/chat/completions", json=chat, headers=new)

    told = [headers["anthropic-version"] for headers in upstream.headers]
    assert told == ["2026-10-21", "2023-06-01"]


async def test_stream_of_the_vendor_is_passed_on_untouched_but_for_pings(
    start: Start, http: aiohttp.ClientSession, upstream: AnthropicUpstream
) -> None:
    gateway = await began(start, upstream)
    upstream.answer = message(THOUGHT, text("hello there"), CALL, stop_reason="tool_use")

    _, raw = await post(http, gateway.base_url, ask(stream=True))

    ping = b'event: ping\ndata: {"type":"ping"}\n\n'
    assert raw == streamed(upstream.answer).replace(ping, b"")


@pytest.mark.parametrize("stream", [False, True])
async def test_client_of_chat_completions_is_served(
    start: Start, http: aiohttp.ClientSession, upstream: AnthropicUpstream, stream: bool
) -> None:
    gateway = await began(start, upstream)
    upstream.answer = message(THOUGHT, text("hello there"), CALL, stop_reason="tool_use")
    tool = {"name": "weather", "parameters": TOOL["input_schema"]}
    body = chat(
        "hi",
        stream=stream,
        stream_options={"include_usage": True} if stream else None,
        tools=[{"type": "function", "function": tool}],
        seed=7,
    )

    response, raw = await completed(http, gateway, body)

    assert response.status == 200, raw
    if stream:
        lines = [line.removeprefix(b"data: ") for line in raw.split(b"\n\n") if line]
        assert lines.pop() == b"[DONE]"
        chunks = [msgspec.json.decode(line) for line in lines]
        usage = chunks[-1]["usage"]
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
        said = {
            name: "".join(delta.get(name) or "" for delta in deltas)
            for name in ("content", "reasoning_content")
        }
        calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
        call = {"id": calls[0]["id"], "name": calls[0]["function"]["name"]}
        arguments = "".join(call["function"]["arguments"] for call in calls)
        reason = chunks[-2]["choices"][0]["finish_reason"]
    else:
        answer = msgspec.json.decode(raw)
        said, usage = answer["choices"][0]["message"], answer["usage"]
        whole = said["tool_calls"][0]
        call = {"id": whole["id"], "name": whole["function"]["name"]}
        arguments, reason = whole["function"]["arguments"], answer["choices"][0]["finish_reason"]
    assert said["content"] == "hello there"
    assert said["reasoning_content"] == "hm"
    assert call == {"id": "toolu_1", "name": "weather"}
    assert msgspec.json.decode(arguments) == {"city": "Köln"}
    assert reason == "tool_calls"
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (
        15,
        7,
        22,
    )
    assert response.headers["x-gw-warnings"] == "dropped seed"
    assert upstream.bodies[0]["tools"] == [{"name": "weather", "input_schema": tool["parameters"]}]
    assert upstream.bodies[0]["max_tokens"] == 4096


@pytest.mark.parametrize(
    ("status", "kind", "seen", "told"),
    [
        (429, "rate_limit_error", 429, "rate_limit_error"),
        (529, "overloaded_error", 502, "api_error"),
        (400, "invalid_request_error", 400, "invalid_request_error"),
        (401, "authentication_error", 502, "api_error"),
    ],
)
async def test_what_the_vendor_refuses_is_told_in_its_own_shape(
    start: Start,
    http: aiohttp.ClientSession,
    upstream: AnthropicUpstream,
    status: int,
    kind: str,
    seen: int,
    told: str,
) -> None:
    gateway = await began(start, upstream)
    error = {"type": kind, "message": "no, says sk-ant-secret"}
    upstream.error = status, {"type": "error", "error": error}

    response, raw = await post(http, gateway.base_url, ask())

    document = msgspec.json.decode(raw)
    assert response.status == seen
    assert document["error"]["type"] == told
    assert document["error"]["attempts"][0]["http_status"] == status
    assert b"sk-ant-secret" not in raw


async def test_error_before_any_word_is_tried_elsewhere(
    start: Start, http: aiohttp.ClientSession, upstream: AnthropicUpstream
) -> None:
    async with AnthropicUpstream() as other:
        upstream.stream = (
            b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error",'
            b'"message":"Overloaded"}}\n\n'
        )
        gateway = await start(
            providers={
                name: {"dialect": "anthropic", "base_url": one.base_url}
                for name, one in (("a", upstream), ("b", other))
            }
        )

        response, raw = await post(http, gateway.base_url, ask(stream=True))

    assert text_of(events_of(raw)) == "hello there"
    assert response.headers["x-routed-via"] == "b/two"
    assert response.headers["x-fallback-attempts"] == "1"


async def test_stream_that_is_cut_after_words_ends_with_an_error_event(
    start: Start, http: aiohttp.ClientSession, upstream: AnthropicUpstream
) -> None:
    gateway = await began(start, upstream)
    upstream.stream = streamed(message(text("hello there"))).partition(b"event: message_delta")[0]

    _, raw = await post(http, gateway.base_url, ask(stream=True))

    events = events_of(raw)
    assert text_of(events) == "hello there"
    assert events[-1]["type"] == "error"


async def test_thoughts_of_another_vendor_do_not_reach_this_one(
    start: Start, http: aiohttp.ClientSession, upstream: AnthropicUpstream
) -> None:
    gateway = await began(start, upstream)
    foreign = {"type": "thinking", "thinking": "hm", "signature": "gw:"}
    body = ask()
    body["messages"] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [foreign, THOUGHT, text("yes")]},
        {"role": "user", "content": "and?"},
    ]

    response, _ = await post(http, gateway.base_url, body)

    assert upstream.bodies[0]["messages"][1]["content"] == [THOUGHT, text("yes")]
    assert response.headers["x-gw-warnings"] == "dropped thinking of other vendors"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("surface", ["responses", "gemini"])
async def test_clients_of_every_other_api_are_served(
    start: Start,
    http: aiohttp.ClientSession,
    upstream: AnthropicUpstream,
    surface: str,
    stream: bool,
) -> None:
    gateway = await began(start, upstream)
    upstream.answer = message(THOUGHT, text("hello there"), CALL, stop_reason="tool_use")
    path, body = "/v1/responses", {"model": "auto", "input": "hi", "stream": stream}
    if surface == "gemini":
        call = "streamGenerateContent?alt=sse" if stream else "generateContent"
        path = f"/v1beta/models/auto:{call}"
        body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}

    async with http.post(f"{gateway.base_url}{path}", json=body) as response:
        raw = await response.read()

    assert response.status == 200, raw
    assert b"hello" in raw
    assert b"there" in raw
    assert b"weather" in raw
    assert "Köln".encode() in raw
    assert b"c2lnbmVk" in raw  # the signature of the thought, with its mark
    assert upstream.bodies[0]["messages"] == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize("stream", [False, True])
async def test_refusal_without_a_word_is_an_answer(
    start: Start, http: aiohttp.ClientSession, upstream: AnthropicUpstream, stream: bool
) -> None:
    """A combo of the family `bandit` rejects empty answers."""
    gateway = await began(start, upstream, combos=[{"id": "auto", "members": "all"}])
    upstream.answer = message(stop_reason="refusal")

    response, raw = await post(http, gateway.base_url, ask(stream=stream))
    _, chatted = await completed(http, gateway, chat("hi", stream=stream))

    assert response.status == 200
    assert b'"stop_reason":"refusal"' in raw
    assert b'"finish_reason":"content_filter"' in chatted
    assert len(upstream.bodies) == 2
