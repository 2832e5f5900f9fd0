"""The Responses API with the other vendors: what one of them signed finds its way back to it."""

import json
from typing import Any

import aiohttp
import pytest

from tests.fakes import anthropic_upstream as anthropic
from tests.fakes import gemini_upstream as gemini
from tests.fakes.anthropic_upstream import AnthropicUpstream
from tests.fakes.gateway import Gateway
from tests.fakes.gemini_upstream import GeminiUpstream
from tests.fakes.responses_upstream import PROOF, STORY, ResponsesUpstream
from tests.gateway.conftest import Start
from tests.gateway.test_responses import events_of, respond

WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object"}}


async def over(start: Start, dialect: str, base_url: str) -> Gateway:
    """A worker whose only provider speaks a dialect."""
    return await start(
        providers={"a": {"dialect": dialect, "base_url": base_url}},
        keys=[{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
        models=[{"provider": "a", "model": "one", "vision": True}],
    )


async def answered(
    http: aiohttp.ClientSession, gateway: Gateway, given: Any, *, stream: bool
) -> dict[str, Any]:
    """The response that a client has in the end."""
    got, body = await respond(http, gateway, given, stream=stream, tools=[WEATHER])
    assert got.status == 200, body
    response: dict[str, Any] = events_of(body)[-1]["response"] if stream else json.loads(body)
    return response


@pytest.mark.parametrize("stream", [False, True])
async def test_thought_and_call_of_anthropic_come_back_as_they_were(
    start: Start, http: aiohttp.ClientSession, stream: bool
) -> None:
    thought = {"type": "thinking", "thinking": "It is Oslo.", "signature": "c2lnbmVk"}
    use = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
    async with AnthropicUpstream() as upstream:
        gateway = await over(start, "anthropic", upstream.base_url)
        upstream.answer = anthropic.message(thought, use, stop_reason="tool_use")
        asked = {"role": "user", "content": "weather?"}

        response = await answered(http, gateway, [asked], stream=stream)
        upstream.answer = anthropic.message(anthropic.text("Cold."))
        result = {"type": "function_call_output", "call_id": "toolu_1", "output": "-3"}
        history = [asked, *response["output"], result]
        after = await answered(http, gateway, history, stream=stream)

    assert [item["type"] for item in response["output"]] == ["reasoning", "function_call"]
    assert response["output"][0]["summary"][0]["text"] == "It is Oslo."
    assert after["output"][0]["content"][0]["text"] == "Cold."
    assert upstream.bodies[1]["messages"][1]["content"] == [thought, use]


@pytest.mark.parametrize("stream", [False, True])
async def test_signature_of_geminis_call_comes_back_with_it(
    start: Start, http: aiohttp.ClientSession, stream: bool
) -> None:
    call = {
        "functionCall": {"name": "weather", "args": {"city": "Oslo"}},
        "thoughtSignature": "c2ln",
    }
    async with GeminiUpstream() as upstream:
        gateway = await over(start, "gemini", upstream.base_url)
        upstream.script = [gemini.frame([call], end="STOP")]
        asked = {"role": "user", "content": "weather?"}

        response = await answered(http, gateway, [asked], stream=stream)
        upstream.script = [gemini.said("Cold.", end="STOP")]
        made = response["output"][-1]
        result = {"type": "function_call_output", "call_id": made["call_id"], "output": "-3"}
        after = await answered(http, gateway, [asked, *response["output"], result], stream=stream)

    assert made["type"] == "function_call"
    assert after["output"][0]["content"][0]["text"] == "Cold."
    [sent] = upstream.bodies[1]["contents"][1]["parts"]
    assert sent["thoughtSignature"] == "c2ln"
    assert sent["functionCall"]["args"] == {"city": "Oslo"}


@pytest.mark.parametrize("stream", [False, True])
async def test_encrypted_reasoning_comes_back_through_a_client_of_anthropics_api(
    start: Start, http: aiohttp.ClientSession, stream: bool
) -> None:
    async def ask(messages: list[Any]) -> bytes:
        body = {"model": "auto", "max_tokens": 99, "messages": messages, "stream": stream}
        async with http.post(
            f"{gateway.base_url}/v1/messages",
            json=body,
            headers={"anthropic-version": "2023-06-01"},
        ) as got:
            assert got.status == 200
            return await got.read()

    async with ResponsesUpstream() as upstream:
        gateway = await over(start, "openai-responses", upstream.base_url)
        asked = {"role": "user", "content": "think"}
        body = await ask([asked])
        said = content_of(body) if stream else json.loads(body)["content"]
        await ask([asked, {"role": "assistant", "content": said}, asked])

    assert [block["type"] for block in said] == ["thinking", "text"]
    assert said[0]["thinking"] == "First this.\n\nThen that."
    assert said[1]["text"] == STORY
    thought = upstream.requests[1]["input"][1]
    assert (thought["type"], thought["encrypted_content"]) == ("reasoning", PROOF)
    assert upstream.requests[1]["include"] == ["reasoning.encrypted_content"]


def content_of(stream: bytes) -> list[dict[str, Any]]:
    """The blocks of a stream of Anthropic's API, put together."""
    blocks: list[dict[str, Any]] = []
    for event in events_of(stream):
        if event["type"] == "content_block_start":
            blocks.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            for name in ("text", "thinking", "signature"):
                if name in delta:
                    blocks[-1][name] = blocks[-1].get(name, "") + delta[name]
    return blocks
