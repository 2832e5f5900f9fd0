"""Gemini's dialect on one side, Anthropic's or that of the Responses API on the other."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.fakes.anthropic_upstream import AnthropicUpstream, message, text
from tests.fakes.gateway import Gateway
from tests.fakes.gemini_upstream import GeminiUpstream, frame
from tests.fakes.responses_upstream import STORY, ResponsesUpstream
from tests.gateway.conftest import Start

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
PARAMETERS = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}
TOOL = {"name": "weather", "parameters": PARAMETERS}
SIGNED = {
    "functionCall": {"name": "weather", "args": {"city": "Bonn"}},
    "thoughtSignature": "c2+/nQ==",
}
ANSWERED = {"functionResponse": {"name": "weather", "response": {"result": "dry"}}}


class Sides(msgspec.Struct):
    """A gateway with an upstream of each dialect, named after it."""

    gateway: Gateway
    anthropic: AnthropicUpstream
    responses: ResponsesUpstream
    gemini: GeminiUpstream
    http: aiohttp.ClientSession

    async def generate(self, model: str, body: dict[str, Any], *, stream: bool) -> list[Any]:
        """Call as a client of Gemini; the documents of the answer."""
        call = "streamGenerateContent" if stream else "generateContent"
        url = f"{self.gateway.base_url}/v1beta/models/{model}:{call}"
        async with self.http.post(url, json=body) as response:
            got = await response.json()
            assert response.status == 200, got
        return got if stream else [got]

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Call as a client of another API."""
        headers = {"anthropic-version": "2023-06-01"}
        url = f"{self.gateway.base_url}{path}"
        async with self.http.post(url, json=body, headers=headers) as response:
            got = await response.json()
            assert response.status == 200, got
        return got


@pytest.fixture
async def sides(start: Start, http: aiohttp.ClientSession) -> AsyncIterator[Sides]:
    async with (
        AnthropicUpstream() as anthropic,
        ResponsesUpstream() as responses,
        GeminiUpstream() as gemini,
    ):
        places = {
            "anthropic": ("anthropic", anthropic.base_url),
            "responses": ("openai-responses", responses.base_url),
            "gemini": ("gemini", gemini.base_url),
        }
        gateway = await start(
            providers={
                name: {"dialect": dialect, "base_url": url}
                for name, (dialect, url) in places.items()
            },
            keys=[{"id": f"{name}-1", "provider": name, "secret": "s"} for name in places],
            models=[{"provider": name, "model": "m-3"} for name in places],
        )
        yield Sides(gateway, anthropic, responses, gemini, http)


def parts(documents: list[Any]) -> list[dict[str, Any]]:
    return [
        part
        for document in documents
        for candidate in document["candidates"]
        for part in candidate["content"]["parts"]
    ]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["anthropic/m-3", "responses/m-3"])
async def test_text_comes_with_reason_and_usage(sides: Sides, model: str, stream: bool) -> None:
    body = {
        "systemInstruction": {"parts": [{"text": "be kind"}]},
        "contents": [{"parts": [{"text": "say"}]}],
        "generationConfig": {"maxOutputTokens": 99, "stopSequences": ["x"]},
    }

    got = await sides.generate(model, body, stream=stream)

    said = "".join(part.get("text", "") for part in parts(got))
    assert said == ("hello there" if "anthropic" in model else STORY)
    assert got[-1]["candidates"][0]["finishReason"] == "STOP"
    assert got[-1]["usageMetadata"]["totalTokenCount"] > 0


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["anthropic/m-3", "responses/m-3"])
async def test_calls_and_their_results_go_both_ways(sides: Sides, model: str, stream: bool) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
    sides.anthropic.answer = message(call, stop_reason="tool_use")
    asked = {"role": "user", "parts": [{"text": "call"}]}
    tools = [{"functionDeclarations": [TOOL]}]

    got = await sides.generate(model, {"contents": [asked], "tools": tools}, stream=stream)
    calls = [part for part in parts(got) if "functionCall" in part]
    assert calls[0]["functionCall"]["args"]["city"] == "Oslo"
    assert got[-1]["candidates"][0]["finishReason"] == "STOP"
    results = [
        {"functionResponse": {**ANSWERED["functionResponse"], "id": one["functionCall"]["id"]}}
        for one in calls
    ]
    contents = [asked, {"role": "model", "parts": calls}, {"role": "user", "parts": results}]
    await sides.generate(model, {"contents": contents, "tools": tools}, stream=stream)

    if "anthropic" in model:
        result = sides.anthropic.bodies[1]["messages"][-1]["content"][0]
        assert (result["type"], result["tool_use_id"]) == ("tool_result", "toolu_1")
        assert sides.anthropic.bodies[0]["tools"][0]["input_schema"] == SCHEMA
    else:
        outputs = [
            item
            for item in sides.responses.requests[1]["input"]
            if item.get("type") == "function_call_output"
        ]
        assert [one["call_id"] for one in outputs] == ["call_one", "call_two"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_thought_of_another_vendor_keeps_its_signature(sides: Sides, stream: bool) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
    sides.anthropic.answer = message(thought, text("yes"))
    asked = {"role": "user", "parts": [{"text": "why"}]}
    thinking = {"generationConfig": {"thinkingConfig": {"thinkingBudget": 1024}}}

    got = await sides.generate("anthropic/m-3", {"contents": [asked], **thinking}, stream=stream)
    turns = {"contents": [asked, {"role": "model", "parts": parts(got)}, asked]}
    await sides.generate("anthropic/m-3", {**turns, **thinking}, stream=stream)
    await sides.generate("gemini/m-3", turns, stream=False)

    blocks = sides.anthropic.bodies[1]["messages"][1]["content"]
    assert [one.get("signature") for one in blocks if one["type"] == "thinking"] == ["c2lnbmVk"]
    told = sides.gemini.bodies[0]["contents"][1]["parts"]
    assert not any("thoughtSignature" in part for part in told)


async def test_a_signature_of_a_call_goes_through_a_client_of_messages(sides: Sides) -> None:
    sides.gemini.script = [frame([SIGNED], end="STOP")]
    tools = [{"name": "weather", "input_schema": SCHEMA}]
    asked = {"role": "user", "content": "rain?"}
    body = {"model": "gemini/m-3", "max_tokens": 99, "tools": tools}

    answer = await sides.post("/v1/messages", {**body, "messages": [asked]})
    call = next(block for block in answer["content"] if block["type"] == "tool_use")
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "dry"}
    turns = [
        *(asked, {"role": "assistant", "content": answer["content"]}),
        {"role": "user", "content": [result]},
    ]
    await sides.post("/v1/messages", {**body, "messages": turns})

    assert answer["stop_reason"] == "tool_use"
    sent = sides.gemini.bodies[1]["contents"]
    assert sent[1]["parts"][-1]["thoughtSignature"] == SIGNED["thoughtSignature"]
    assert sent[2]["parts"][0]["functionResponse"]["name"] == "weather"


async def test_a_signature_of_a_call_goes_through_a_client_of_responses(sides: Sides) -> None:
    sides.gemini.script = [frame([SIGNED], end="STOP")]
    tools = [{"type": "function", "name": "weather", "parameters": SCHEMA}]
    asked = {"role": "user", "content": "rain?"}
    body = {
        "model": "gemini/m-3",
        "tools": tools,
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }

    answer = await sides.post("/v1/responses", {**body, "input": [asked]})
    call = next(item for item in answer["output"] if item["type"] == "function_call")
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "dry"}
    await sides.post("/v1/responses", {**body, "input": [asked, *answer["output"], result]})

    sent = sides.gemini.bodies[1]["contents"]
    signed = [part for one in sent for part in one["parts"] if "functionCall" in part]
    assert signed[0]["thoughtSignature"] == SIGNED["thoughtSignature"]
