"""An upstream that speaks Gemini's dialect, behind Gemini's API and behind OpenAI's."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.fakes.gateway import Gateway
from tests.fakes.gemini_upstream import GeminiUpstream, frame, said
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "additionalProperties": False,
            "x-order": 1,
        },
    },
}
SIGNED_CALL = {
    "functionCall": {"name": "weather", "args": {"city": "Bonn"}},
    "thoughtSignature": "c2ln",
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
        models=[{"provider": "g", "model": "gemini-3-pro", "vision": True}],
    )


def deltas(body: bytes) -> list[dict[str, Any]]:
    """The choices of a chat stream; it must have its end marker."""
    frames = [line for line in body.split(b"\n\n") if line.startswith(b"data: ")]
    assert frames[-1] == b"data: [DONE]"
    documents = [msgspec.json.decode(one.removeprefix(b"data: ")) for one in frames[:-1]]
    return [choice for document in documents for choice in document["choices"]]


async def test_chat_is_answered_and_the_key_travels_in_a_header_only(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    messages = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}]

    response, body = await post(http, gateway.base_url, chat(messages=messages, max_tokens=7))

    answer = msgspec.json.decode(body)
    assert response.status == 200
    assert answer["choices"][0]["message"]["content"] == " there"
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["total_tokens"] == 6
    assert upstream.paths == ["/v1beta/models/gemini-3-pro:generateContent"]
    assert upstream.keys == ["AIza-secret-of-g1"]
    assert upstream.authorizations == [None]
    assert upstream.bodies == [
        {
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "systemInstruction": {"parts": [{"text": "be kind"}]},
            "generationConfig": {"maxOutputTokens": 7},
        }
    ]


async def test_a_chat_stream_has_thoughts_text_usage_and_end(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.script.insert(0, frame([{"text": "hm", "thought": True}]))

    _, body = await post(
        http,
        gateway.base_url,
        chat(stream=True, stream_options={"include_usage": True}, reasoning_effort="low"),
    )

    choices = deltas(body)
    assert "".join(one["delta"].get("reasoning_content", "") for one in choices) == "hm"
    assert "".join(one["delta"].get("content", "") for one in choices) == "Hello there"
    assert choices[-1]["finish_reason"] == "stop"
    assert b'"total_tokens":6' in body
    assert upstream.paths[0].endswith(":streamGenerateContent?alt=sse")
    config = upstream.bodies[0]["generationConfig"]
    assert config["thinkingConfig"] == {"thinkingBudget": 1024, "includeThoughts": True}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["gemini_thought_signature", "extra_content"])
async def test_a_signature_of_a_call_goes_through_a_chat_client_and_back(
    gateway: Gateway,
    upstream: GeminiUpstream,
    http: aiohttp.ClientSession,
    name: str,
    stream: bool,
) -> None:
    upstream.script = [frame([SIGNED_CALL], end="STOP")]

    response, body = await post(
        http, gateway.base_url, chat("rain?", tools=[WEATHER], stream=stream)
    )

    if stream:
        call = next(
            one["delta"]["tool_calls"][0] for one in deltas(body) if "tool_calls" in one["delta"]
        )
        call.pop("index")
    else:
        answer = msgspec.json.decode(body)["choices"][0]
        assert answer["finish_reason"] == "tool_calls"
        call = answer["message"]["tool_calls"][0]
    assert "schema without x-order" in response.headers["x-gw-warnings"]
    kept = {key: call[key] for key in ("id", "type", "function", name)}
    messages = [
        {"role": "user", "content": "rain?"},
        {"role": "assistant", "content": None, "tool_calls": [kept]},
        {"role": "tool", "tool_call_id": call["id"], "content": "dry"},
    ]
    await post(http, gateway.base_url, chat(messages=messages, tools=[WEATHER]))

    spoken, result = upstream.bodies[1]["contents"][1:]
    assert spoken["parts"][0]["thoughtSignature"] == "c2ln"
    assert spoken["parts"][0]["functionCall"]["args"] == {"city": "Bonn"}
    assert result["role"] == "user"
    assert result["parts"][0]["functionResponse"]["name"] == "weather"
    assert result["parts"][0]["functionResponse"]["response"] == {"result": "dry"}


async def test_a_request_of_the_same_dialect_arrives_as_it_was_and_so_does_its_answer(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi", "videoMetadata": {"fps": 1}}]}],
        "tools": [{"googleSearch": {}}],
        "unknownMember": {"a": [1, None]},
    }
    upstream.script = [said("Hi", end="STOP", usage={"totalTokenCount": 3})]
    upstream.script[0]["groundingMetadata"] = {"x": 1}  # type: ignore[index]

    async with http.post(
        f"{gateway.base_url}/v1beta/models/gemini-3-pro:generateContent?key=x", json=body
    ) as response:
        answer = await response.json()

    assert upstream.bodies == [body]
    assert answer == upstream.script[0]
    assert "x-gw-warnings" not in response.headers
    assert "key=" not in upstream.paths[0]


@pytest.mark.parametrize("query", ["", "?alt=sse"])
async def test_a_stream_of_the_same_dialect_keeps_every_frame(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession, query: str
) -> None:
    upstream.script.insert(0, frame([{"executableCode": {"code": "1"}}]))
    url = f"{gateway.base_url}/v1beta/models/gemini-3-pro:streamGenerateContent{query}"

    async with http.post(url, json={"contents": [{"parts": [{"text": "hi"}]}]}) as response:
        body = await response.read()

    if query:
        lines = body.split(b"\n\n")[:-1]
        got = [msgspec.json.decode(line.removeprefix(b"data: ")) for line in lines]
    else:
        got = msgspec.json.decode(body)
    assert got == upstream.script


async def test_calls_without_a_signature_get_the_sentinel_in_the_same_dialect_too(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    call = {"functionCall": {"name": "weather", "args": {}}}
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "rain?"}]},
            {"role": "model", "parts": [call, call]},
            {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {}}}]},
        ]
    }
    url = f"{gateway.base_url}/v1beta/models/gemini-3-pro:generateContent"

    async with http.post(url, json=body):
        pass

    first, second = upstream.bodies[0]["contents"][1]["parts"]
    assert first == {**call, "thoughtSignature": "skip_thought_signature_validator"}
    assert second == call


async def test_an_image_is_an_answer(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    upstream.script = [frame([image], end="STOP")]
    url = f"{gateway.base_url}/v1beta/models/gemini-3-pro:streamGenerateContent"

    async with http.post(url, json={"contents": [{"parts": [{"text": "draw"}]}]}) as response:
        got = await response.json()

    assert got == upstream.script


async def test_an_error_status_is_told_with_its_class_and_without_the_key(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.status = 400
    message = "Invalid value at 'contents' AIza-secret-of-g1"
    upstream.script = [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]

    response, body = await post(http, gateway.base_url, chat())

    assert response.status == 400
    assert msgspec.json.decode(body)["error"]["code"] == "provider_rejected_request"
    assert b"secret-of-g1" not in body


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_the_model_bungled_is_no_answer(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession, stream: bool
) -> None:
    upstream.script = [frame([], end="MALFORMED_FUNCTION_CALL")]

    response, body = await post(http, gateway.base_url, chat(stream=stream))

    assert response.status == 502
    assert b"MALFORMED_FUNCTION_CALL" in body


async def test_a_stream_that_breaks_off_has_no_end_marker(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.script = [said("Hello")]

    _, body = await post(http, gateway.base_url, chat(stream=True))

    assert b"stream_interrupted" in body
    assert b"[DONE]" not in body


def several(*texts: str, **more: Any) -> dict[str, Any]:
    """A frame of several candidates."""
    alone = [frame([{"text": text}], **more)["candidates"][0] for text in texts]
    return {"candidates": [{**one, "index": index} for index, one in enumerate(alone)]}


async def test_several_answers_in_a_stream_are_told_apart(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.script = [several("Hel", "Oth"), several("lo", "er"), several("", "", end="STOP")]
    response, body = await post(http, gateway.base_url, chat(stream=True, n=2))

    said = deltas(body)
    for index, text in enumerate(("Hello", "Other")):
        own = [one for one in said if one["index"] == index]
        assert "".join(one["delta"].get("content", "") for one in own) == text
        assert [one["finish_reason"] for one in own if one["finish_reason"]] == ["stop"]
        assert own[0]["delta"]["role"] == "assistant"
    assert upstream.bodies[0]["generationConfig"]["candidateCount"] == 2
    assert "x-gw-warnings" not in response.headers


async def test_images_of_a_model_reach_a_chat_and_what_it_cannot_show_is_named(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    parts = [{"inlineData": {"mimeType": kind, "data": "AAAA"}} for kind in ("image/png", "a/b")]
    upstream.script = [frame([{"text": "see"}, *parts], end="STOP")]
    address = "data:image/png;base64,AAAA"

    response, body = await post(http, gateway.base_url, chat())
    message = msgspec.json.decode(body)["choices"][0]["message"]
    _, streamed = await post(http, gateway.base_url, chat(stream=True))

    assert [image["image_url"]["url"] for image in message["images"]] == [address]
    assert message["content"] == "see"
    assert response.headers["x-gw-warnings"] == "dropped answer: document"
    shown = [one["delta"]["images"] for one in deltas(streamed) if "images" in one["delta"]]
    assert [image["image_url"]["url"] for images in shown for image in images] == [address]
    assert b"\n: dropped answer: document\n" in streamed


async def test_arguments_are_held_against_the_schema_of_a_gemini_client_too(
    start: Start, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(
        providers={"g": {"dialect": "gemini", "base_url": upstream.base_url}},
        keys=[{"id": "g1", "provider": "g", "secret": "s"}],
        models=[{"provider": "g", "model": "gemini-3-pro"}],
        routing={"guardrails": {"validate_tool_arguments": True}},
    )
    upstream.script = [frame([{"functionCall": {"name": "f", "args": {"n": "x"}}}], end="STOP")]
    schema = {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}}
    body = {
        "contents": [{"parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}],
    }

    async with http.post(f"{gateway.base_url}/v1beta/models/auto:generateContent", json=body) as r:
        answer = await r.json()

    assert r.status == 502
    assert "schema" in answer["error"]["message"]


async def test_what_was_asked_for_in_detail_stands_in_the_last_frame(
    start: Start, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(
        providers={"g": {"dialect": "gemini", "base_url": upstream.base_url}},
        keys=[{"id": "g1", "provider": "g", "secret": "s"}],
        models=[{"provider": "g", "model": "gemini-3-pro"}],
    )
    url = f"{gateway.base_url}/v1beta/models/auto:streamGenerateContent"

    async with http.post(
        url, json={"contents": [{"parts": [{"text": "hi"}]}]}, headers={"x-gw-detail": "1"}
    ) as response:
        got = await response.json()

    assert got[-1]["attempts"][0]["provider"] == "g"
    assert "attempts" not in got[0]


async def test_a_blocked_prompt_is_passed_on_as_it_is(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.script = [{"promptFeedback": {"blockReason": "SAFETY"}}]
    url = f"{gateway.base_url}/v1beta/models/gemini-3-pro:streamGenerateContent"

    async with http.post(url, json={"contents": [{"parts": [{"text": "hi"}]}]}) as response:
        got = await response.json()
    _, body = await post(http, gateway.base_url, chat(stream=True))
    _, whole = await post(http, gateway.base_url, chat())

    assert got == upstream.script
    assert [one["finish_reason"] for one in deltas(body)] == ["content_filter"]
    assert msgspec.json.decode(whole)["choices"][0]["finish_reason"] == "content_filter"
