"""The Responses API end to end: over upstreams that chat, and over such that speak it too."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes import responses_frames as wire
from tests.fakes.gateway import Gateway
from tests.fakes.responses_upstream import CALLS, PROOF, STORY, ResponsesUpstream
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


@pytest.fixture
async def upstream() -> AsyncIterator[ResponsesUpstream]:
    async with ResponsesUpstream() as running:
        yield running


async def with_upstream(start: Start, upstream: ResponsesUpstream, **sections: Any) -> Gateway:
    """A worker whose first provider speaks the Responses API."""
    provider = {"dialect": "openai-responses", "base_url": upstream.base_url}
    return await start(
        providers={"a": provider},
        keys=[{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
        models=[{"provider": "a", "model": "one", "vision": True}],
        **sections,
    )


async def respond(
    http: aiohttp.ClientSession, gateway: Gateway, given: Any, **members: Any
) -> tuple[aiohttp.ClientResponse, bytes]:
    body = {"model": "auto", "input": given, **members}
    async with http.post(f"{gateway.base_url}/v1/responses", json=body) as response:
        return response, await response.read()


def events_of(body: bytes) -> list[dict[str, Any]]:
    blocks = body.decode().split("\n\n")[:-1]
    events = []
    for block in blocks:
        name, _, data = block.partition("\ndata: ")
        event = json.loads(data)
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


async def test_frames_of_the_same_dialect_pass_untouched(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    gateway = await with_upstream(start, upstream)

    for word, answer in (
        ("say", wire.response(wire.message(wire.text(STORY)))),
        ("call", wire.response(*CALLS)),
    ):
        _, buffered = await respond(http, gateway, word)
        _, streamed = await respond(http, gateway, word, stream=True)

        assert json.loads(buffered) == answer
        assert streamed == b"".join(wire.frames(answer))


async def test_request_of_the_same_dialect_reaches_the_upstream_with_its_own_model_only(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    gateway = await with_upstream(start, upstream)
    members = {
        "tools": [{"type": "web_search"}],
        "store": True,
        "reasoning": {"effort": "low"},
        "x_new": [1],
    }

    await respond(http, gateway, "say", **members)

    assert upstream.requests == [{"model": "one", "input": "say", **members}]
    assert upstream.headers[0]["authorization"] == "Bearer secret-of-a1"


async def test_many_calls_of_the_vendors_own_tools_are_no_empty_answer(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    gateway = await with_upstream(start, upstream)

    response, body = await respond(http, gateway, "search", stream=True)

    assert response.status == 200
    assert events_of(body)[-1]["type"] == "response.completed"


@pytest.mark.parametrize("stream", [False, True])
async def test_failed_answer_moves_on_to_the_next_target(
    start: Start,
    http: aiohttp.ClientSession,
    upstream: ResponsesUpstream,
    simulator: RunningSimulator,
    stream: bool,
) -> None:
    native = {"dialect": "openai-responses", "base_url": upstream.base_url}
    gateway = await start(
        providers={"a": native, "b": {"dialect": "openai", "base_url": simulator.base_url}}
    )

    response, body = await respond(http, gateway, "fail", stream=stream)

    assert response.status == 200
    assert response.headers["x-routed-via"] == "b/two"
    assert response.headers["x-fallback-attempts"] == "1"
    last = events_of(body)[-1]["response"] if stream else json.loads(body)
    assert last["status"] == "completed"


async def test_stream_that_breaks_after_its_first_text_ends_with_an_error_event(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    gateway = await with_upstream(start, upstream)

    _, body = await respond(http, gateway, "break", stream=True)

    events = events_of(body)
    assert events[-1]["error"]["code"] == "stream_interrupted"
    assert [event["type"] for event in events].count("error") == 1
    assert "response.failed" not in [event["type"] for event in events]


async def test_what_a_chat_upstream_cannot_be_told_stands_in_a_header(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    tools = [{"type": "web_search"}, {"type": "function", "name": "f", "parameters": {}}]

    response, body = await respond(
        http, gateway, steer(text="fine"), tools=tools, truncation="auto", prompt_cache_key="k"
    )

    assert json.loads(body)["output"][0]["content"][0]["text"] == "fine"
    warned = response.headers["x-gw-warnings"]
    for name in ("tools[0]: web_search", "truncation", "prompt_cache_key"):
        assert f"dropped {name}" in warned


async def test_computer_use_is_refused_where_no_upstream_has_it(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()

    response, body = await respond(http, gateway, "go", tools=[{"type": "computer_use_preview"}])

    error = json.loads(body)["error"]
    assert response.status == 400
    assert error["code"] == "provider_rejected_request"


async def test_chat_client_is_answered_by_an_upstream_of_the_responses_api(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    gateway = await with_upstream(start, upstream)

    _, body = await post(
        http,
        gateway.base_url,
        chat("think", max_tokens=50, reasoning_effort="low", tools=[WEATHER]),
    )

    answer = json.loads(body)
    choice = answer["choices"][0]
    sent = upstream.requests[0]
    assert choice["message"]["content"] == STORY
    assert choice["message"]["reasoning_content"] == "First this.\n\nThen that."
    assert choice["finish_reason"] == "stop"
    assert answer["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}
    assert answer["usage"]["completion_tokens_details"] == {"reasoning_tokens": 3}
    assert (sent["store"], sent["max_output_tokens"]) == (False, 50)
    assert sent["include"] == ["reasoning.encrypted_content"]
    assert sent["tools"][0]["name"] == "weather"


@pytest.mark.parametrize(
    ("word", "reason"),
    [("say", "stop"), ("call", "tool_calls"), ("cut", "length"), ("filter", "content_filter")],
)
async def test_chat_client_gets_streams_and_answers_alike(
    start: Start,
    http: aiohttp.ClientSession,
    upstream: ResponsesUpstream,
    word: str,
    reason: str,
) -> None:
    gateway = await with_upstream(start, upstream)
    options = {"include_usage": True}

    _, whole = await post(http, gateway.base_url, chat(word, tools=[WEATHER]))
    _, body = await post(
        http,
        gateway.base_url,
        chat(word, stream=True, stream_options=options, tools=[WEATHER]),
    )

    choice = json.loads(whole)["choices"][0]
    lines = [line[6:] for line in body.decode().split("\n") if line.startswith("data: ")]
    chunks = [json.loads(line) for line in lines[:-1]]
    deltas = [one["delta"] for chunk in chunks for one in chunk["choices"]]
    arguments = ["", ""]
    for delta in deltas:
        for call in delta.get("tool_calls", ()):
            arguments[call["index"]] += call["function"]["arguments"]
    calls = choice["message"].get("tool_calls", [])
    assert choice["finish_reason"] == reason
    assert lines[-1] == "[DONE]"
    assert [one["finish_reason"] for chunk in chunks for one in chunk["choices"]][-1] == reason
    said = choice["message"]["content"] or ""
    assert "".join(delta.get("content") or "" for delta in deltas) == said
    assert [text for text in arguments if text] == [call["function"]["arguments"] for call in calls]
    assert chunks[-1]["usage"]["total_tokens"] == 18


async def test_error_status_of_the_upstream_is_told_without_its_secret(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    gateway = await with_upstream(start, upstream)

    response, body = await respond(http, gateway, "500")

    assert response.status == 502
    assert json.loads(body)["error"]["attempts"][0]["provider"] == "a"
    assert b"secret-of-a1" not in body


async def test_thoughts_of_another_vendor_do_not_reach_an_upstream_of_this_one(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream
) -> None:
    gateway = await with_upstream(start, upstream)
    own = {"type": "reasoning", "summary": [], "encrypted_content": PROOF}
    foreign = {"type": "reasoning", "summary": [], "encrypted_content": "gw1t.Z3c6Y2xhdWRl"}
    asked = {"role": "user", "content": "say"}

    await respond(http, gateway, [own, foreign, asked])

    assert upstream.requests[0]["input"] == [own, asked]


@pytest.mark.parametrize("stream", [False, True])
async def test_call_that_breaks_its_schema_is_not_taken(
    start: Start, http: aiohttp.ClientSession, upstream: ResponsesUpstream, stream: bool
) -> None:
    rails = {"routing": {"guardrails": {"validate_tool_arguments": True}}}
    gateway = await with_upstream(start, upstream, **rails)

    def tool(kind: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"city": {"type": kind}}}
        return {"type": "function", "name": "weather", "parameters": schema}

    sound, _ = await respond(http, gateway, "call", stream=stream, tools=[tool("string")])
    broken, body = await respond(http, gateway, "call", stream=stream, tools=[tool("integer")])

    assert sound.status == 200
    assert broken.status == 502
    assert json.loads(body)["error"]["attempts"][0]["code"] == "invalid_tool_arguments"
