"""Mended answers as clients get them, buffered and streamed, within a dialect and across."""

import json
import sys
from collections.abc import AsyncIterator
from itertools import product
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from tests.fakes.anthropic_frames import events_of
from tests.fakes.anthropic_upstream import AnthropicUpstream, message, text
from tests.fakes.chat_upstream import ChatUpstream
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer

PARAMETERS: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "array"}},
}
TOOLS: Final = [{"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}]
CLAUDE_TOOLS: Final = [{"name": "look", "description": "d", "input_schema": PARAMETERS}]
CLAUDE_HEADERS: Final = {"anthropic-version": "2023-06-01"}
INLINE: Final = '<tool_call>{"name": "look", "arguments": {"city": "Ulm"}}</tool_call>'
BROKEN: Final = '<tool_call>{"name": "look", "argum'
JSON_WANTED: Final = {"response_format": {"type": "json_object"}}


class Got(msgspec.Struct):
    """An answer of either API, put together."""

    text: str = ""
    thoughts: str = ""
    calls: list[tuple[str, Any]] = []
    reason: str | None = None
    warnings: str | None = None


async def ask_chat(http: aiohttp.ClientSession, gateway: Gateway, body: dict[str, Any]) -> Got:
    response, raw = await post(http, gateway.base_url, body)
    assert response.status == 200, raw
    found = Got(warnings=response.headers.get("x-gw-warnings"))
    frames = [json.loads(raw)] if not body.get("stream") else frames_of(raw)
    for frame in frames:
        for choice in frame["choices"]:
            spoken = choice.get("message") or choice["delta"]
            found.text += spoken.get("content") or ""
            found.thoughts += spoken.get("reasoning_content") or ""
            for call in spoken.get("tool_calls") or []:
                function = call["function"]
                if function.get("name"):
                    found.calls.append((function["name"], ""))
                    assert call["id"]
                at = call.get("index", -1)
                name, arguments = found.calls[at]
                found.calls[at] = (name, arguments + function["arguments"])
            found.reason = choice.get("finish_reason") or found.reason
    found.calls = [(name, json.loads(arguments)) for name, arguments in found.calls]
    return found


def frames_of(raw: bytes) -> list[dict[str, Any]]:
    assert raw.count(b"data: [DONE]\n\n") == 1
    lines = [line.removeprefix(b"data: ") for line in raw.split(b"\n\n") if line]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


async def ask_claude(http: aiohttp.ClientSession, gateway: Gateway, body: dict[str, Any]) -> Got:
    body = {"max_tokens": 100, **body}
    async with http.post(
        f"{gateway.base_url}/v1/messages", json=body, headers=CLAUDE_HEADERS
    ) as response:
        raw = await response.read()
        assert response.status == 200, raw
    found = Got(warnings=response.headers.get("x-gw-warnings"))
    if not body.get("stream"):
        answer = json.loads(raw)
        found.reason = answer["stop_reason"]
        for block in answer["content"]:
            found.text += block.get("text", "")
            found.thoughts += block.get("thinking", "")
            if block["type"] == "tool_use":
                found.calls.append((block["name"], block["input"]))
        return found
    events = events_of(raw)
    assert events[-1]["type"] == "message_stop"
    arguments: list[str] = []
    for event in events:
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            found.calls.append((event["content_block"]["name"], None))
            arguments.append("")
        delta = event.get("delta", {})
        found.text += delta.get("text", "")
        found.thoughts += delta.get("thinking", "")
        if "partial_json" in delta:
            arguments[-1] += delta["partial_json"]
        found.reason = delta.get("stop_reason") or found.reason
    found.calls = [
        (name, json.loads(given)) for (name, _), given in zip(found.calls, arguments, strict=True)
    ]
    return found


async def ask(http: aiohttp.ClientSession, gateway: Gateway, api: str, body: dict[str, Any]) -> Got:
    """Ask over an API, with its own tools where the body has any; reasons in OpenAI's words."""
    if api == "chat":
        return await ask_chat(http, gateway, body)
    if "tools" in body:
        body = {**body, "tools": CLAUDE_TOOLS}
    found = await ask_claude(http, gateway, body)
    found.reason = {"end_turn": "stop", "tool_use": "tool_calls"}.get(found.reason or "")
    return found


WAYS: Final = (False, True)
"""Buffered and streamed."""

APIS: Final = ("chat", "messages")


async def test_thought_in_tags_reaches_the_client_as_reasoning(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    for api, stream, tools in product(APIS, WAYS, (False, True)):
        body = chat(steer(text="<think>First this.\nThen that.</think>\n\nHi you."), stream=stream)

        found = await ask(http, gateway, api, {**body, **({"tools": TOOLS} if tools else {})})

        assert (found.text, found.thoughts.strip()) == ("Hi you.", "First this.\nThen that.")
        assert (found.reason, found.calls) == ("stop", [])
        assert found.warnings == "thoughts in tags read as reasoning"
        assert await gateway.engine.settle() == 0


async def test_call_in_the_text_reaches_the_client_as_a_call(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    for api, stream, written in product(APIS, WAYS, (INLINE, f"<think>hm</think>\n{INLINE}")):
        body = chat(steer(text=written), stream=stream, tools=TOOLS)

        found = await ask(http, gateway, api, body)

        assert (found.text, found.calls) == ("", [("look", {"city": "Ulm"})])
        assert found.reason == "tool_calls"
        assert "calls read out of the text" in str(found.warnings)


async def test_call_that_nobody_can_read_is_tried_elsewhere(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()

    for stream in WAYS:
        response, raw = await post(
            http, gateway.base_url, chat(steer(text=BROKEN), stream=stream, tools=TOOLS)
        )

        assert response.status == 502
        tried = [(one["code"], one["reason"]) for one in json.loads(raw)["error"]["attempts"]]
        assert tried == [("invalid_tool_arguments", "gate.inline_call")] * 2


async def test_arguments_are_put_right_by_the_schema(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    calls = [
        {"name": "look", "arguments": '{"days": "[1, 2]"}'},
        {"name": "look", "arguments": '"{\\"city\\": \\"Ulm\\"}"'},
        {"name": "look", "arguments": '{"days": [3]}'},
    ]
    script = steer(tool_calls=calls, finish_reason="stop")

    for api, stream in product(APIS, WAYS):
        found = await ask(http, gateway, api, chat(script, stream=stream, tools=TOOLS))

        assert found.calls == [
            ("look", {"days": [1, 2]}),
            ("look", {"city": "Ulm"}),
            ("look", {"days": [3]}),
        ]
        assert found.reason == "tool_calls"


async def test_arguments_are_judged_after_they_were_put_right(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(routing={"guardrails": {"validate_tool_arguments": True}})
    calls = [{"name": "look", "arguments": '{"days": "[1]"}'}]
    wrong = f"<tool_call>{json.dumps({'name': 'look', 'arguments': {'city': 3}})}</tool_call>"

    for stream in WAYS:
        found = await ask_chat(
            http, gateway, chat(steer(tool_calls=calls), stream=stream, tools=TOOLS)
        )
        response, raw = await post(
            http, gateway.base_url, chat(steer(text=wrong), stream=stream, tools=TOOLS)
        )

        assert found.calls == [("look", {"days": [1]})]
        assert response.status == 502
        assert [one["reason"] for one in json.loads(raw)["error"]["attempts"]] == [
            "gate.tool_arguments"
        ] * 2


async def test_call_that_the_platform_could_not_read_is_rescued_from_its_error(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    error = {
        "message": "Failed to call a function.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": '<function=look>{"city": "Ulm"}</function>',
    }
    for api, (stream, in_band) in product(APIS, ((False, False), (True, False), (True, True))):
        fault: dict[str, Any] = {"kind": "status", "code": 400, "body": {"error": error}}
        if in_band:
            fault = {"kind": "in_band_error", "error": error, "at_frame": 1}
        name = f"g{api}{stream}{in_band}"
        body = chat(steer(id=name, fault=fault, times=1), stream=stream, tools=TOOLS)

        found = await ask(http, gateway, api, body)

        assert (found.calls, found.reason) == ([("look", {"city": "Ulm"})], "tool_calls")
        assert await gateway.engine.settle() == 0


@pytest.mark.parametrize("written", ['```json\n{"a": 1}\n```', 'Here: {"a": 1}. Bye!'])
async def test_json_is_taken_out_of_what_stands_around_it(
    start: Start, http: aiohttp.ClientSession, written: str
) -> None:
    gateway = await start()

    found = await ask_chat(http, gateway, chat(steer(text=written), **JSON_WANTED))
    passed = await ask_chat(http, gateway, chat(steer(text=written), stream=True, **JSON_WANTED))

    assert (found.text, found.warnings) == ('{"a": 1}', "text around the JSON left out")
    assert (passed.text, passed.warnings) == (written, None)


async def test_formats_other_than_json_are_left_alone(
    start: Start, http: aiohttp.ClientSession
) -> None:
    wanted = {"response_format": {"type": "regex", "pattern": "yes|no"}}
    async with ChatUpstream() as upstream:
        provider = {"dialect": "openai", "base_url": upstream.base_url}
        gateway = await start(providers={"a": provider, "b": provider})

        found = await ask_chat(http, gateway, chat("hi", **wanted))

    assert (found.text, found.warnings) == ("Hello there", None)


@pytest.mark.parametrize(
    ("written", "more", "reason"),
    [
        ("I would rather not.", {}, "gate.format_ignored"),
        ('{"a": "b', {"finish_reason": "length"}, "gate.truncated_json"),
    ],
)
async def test_answer_without_the_json_asked_for_is_tried_elsewhere(
    start: Start,
    http: aiohttp.ClientSession,
    written: str,
    more: dict[str, Any],
    reason: str,
) -> None:
    gateway = await start()

    response, raw = await post(
        http, gateway.base_url, chat(steer(text=written, **more), **JSON_WANTED)
    )

    assert response.status == 502
    tried = [(one["code"], one["reason"]) for one in json.loads(raw)["error"]["attempts"]]
    assert tried == [("format_ignored", reason)] * 2


async def test_reasoning_alone_is_the_text_of_a_whole_answer(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    body = chat(steer(text="", reasoning="All of it."))

    found = await ask_chat(http, gateway, body)

    assert (found.text, found.thoughts) == ("All of it.", "")
    assert found.warnings == "reasoning given as the text"


async def test_what_is_switched_off_reaches_the_client_as_it_came(
    start: Start, http: aiohttp.ClientSession
) -> None:
    off = dict.fromkeys(
        ("think_tags", "inline_calls", "tool_arguments", "json_output", "lone_reasoning"), False
    )
    gateway = await start(routing={"mending": off})
    calls = [{"name": "look", "arguments": '{"days": "[1]"}'}]

    for stream in WAYS:
        thought = await ask_chat(
            http, gateway, chat(steer(text="<think>a</think>b"), stream=stream)
        )
        inline = await ask_chat(http, gateway, chat(steer(text=INLINE), stream=stream, tools=TOOLS))
        called = await ask_chat(
            http, gateway, chat(steer(tool_calls=calls), stream=stream, tools=TOOLS)
        )

        assert thought.text == "<think>a</think>b"
        assert (inline.text, inline.reason) == (INLINE, "stop")
        assert called.calls == [("look", {"days": "[1]"})]


async def test_one_model_may_be_left_as_it_writes(
    start: Start, http: aiohttp.ClientSession
) -> None:
    models = [{"provider": "a", "model": "one", "mending": False}]
    gateway = await start(models=[*models, {"provider": "b", "model": "two"}])
    text = f"<think>a</think>{INLINE}"

    for stream in WAYS:
        left = await ask_chat(http, gateway, chat(steer(text=text), stream=stream, tools=TOOLS))
        body = {**chat(steer(text=text), stream=stream, tools=TOOLS), "model": "b/two"}
        mended = await ask_chat(http, gateway, body)

        assert (left.text, left.warnings) == (text, None)
        assert (mended.text, len(mended.calls)) == ("", 1)


@pytest.fixture
async def claude(start: Start) -> AsyncIterator[tuple[Gateway, AnthropicUpstream]]:
    async with AnthropicUpstream() as upstream:
        gateway = await start(
            providers={"claude": {"dialect": "anthropic", "base_url": upstream.base_url}},
            keys=[{"id": "c1", "provider": "claude", "secret": "sk-ant-secret"}],
            models=[{"provider": "claude", "model": "claude-up"}],
        )
        yield gateway, upstream


async def test_upstreams_of_other_dialects_are_mended_too(
    http: aiohttp.ClientSession,
    claude: tuple[Gateway, AnthropicUpstream],
) -> None:
    gateway, upstream = claude
    upstream.answer = message(text(f"<think>hm</think>{INLINE}"))

    for api, stream in product(APIS, WAYS):
        found = await ask(http, gateway, api, chat("hi", stream=stream, tools=TOOLS))

        assert (found.text, found.thoughts) == ("", "hm")
        assert (found.calls, found.reason) == ([("look", {"city": "Ulm"})], "tool_calls")


async def test_words_before_a_call_of_the_same_dialect_leave_its_frames_alone(
    http: aiohttp.ClientSession, claude: tuple[Gateway, AnthropicUpstream]
) -> None:
    gateway, upstream = claude
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {"city": "Ulm"}}
    upstream.answer = message(text("Let me see."), call, stop_reason="tool_use")

    for stream in WAYS:
        found = await ask(http, gateway, "messages", chat("hi", stream=stream, tools=TOOLS))

        assert (found.text, found.calls) == ("Let me see.", [("look", {"city": "Ulm"})])
        assert found.warnings is None


async def test_answer_that_its_vendor_signed_reaches_a_client_of_its_dialect_as_it_is(
    http: aiohttp.ClientSession, claude: tuple[Gateway, AnthropicUpstream]
) -> None:
    gateway, upstream = claude
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {"days": "[1]"}}
    upstream.answer = message(thought, call, stop_reason="tool_use")
    for stream in WAYS:
        body = {**chat("hi", stream=stream), "max_tokens": 9, "tools": CLAUDE_TOOLS}

        async with http.post(
            f"{gateway.base_url}/v1/messages", json=body, headers=CLAUDE_HEADERS
        ) as response:
            raw = await response.read()

        assert b'"c2lnbmVk"' in raw
        assert "x-gw-warnings" not in response.headers
        if not stream:
            assert json.loads(raw) == upstream.answer


async def test_arguments_of_the_same_dialect_are_put_right_before_anything_is_sent(
    http: aiohttp.ClientSession, claude: tuple[Gateway, AnthropicUpstream]
) -> None:
    gateway, upstream = claude
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {"days": "[1]"}}
    upstream.answer = message(call, stop_reason="tool_use")

    for stream in WAYS:
        found = await ask(http, gateway, "messages", chat("hi", stream=stream, tools=TOOLS))

        assert (found.calls, found.reason) == ([("look", {"days": [1]})], "tool_calls")
        assert found.warnings == "arguments of calls put right"


async def test_plain_answers_come_by_nothing_of_mending(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    met: list[str] = []

    def note(frame: Any, what: str, _: Any) -> None:
        if what == "call" and "/mending" in frame.f_code.co_filename:
            met.append(frame.f_code.co_qualname)

    for stream in WAYS:
        sys.setprofile(note)
        try:
            found = await ask_chat(http, gateway, chat("hello", stream=stream))
        finally:
            sys.setprofile(None)

        assert (bool(found.text), met) == (True, [])


SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "integer"}}}
PROSE: Final = steer(text='Here you are: {"a": 1}. Bye!')
ASKED: Final = {
    "/v1/responses": {
        "model": "auto",
        "input": PROSE,
        "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
    },
    "/v1/messages": {
        **chat(PROSE),
        "max_tokens": 99,
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    },
    "/v1beta/models/auto:generateContent": {
        "contents": [{"role": "user", "parts": [{"text": PROSE}]}],
        "generationConfig": {"responseMimeType": "application/json"},
    },
}


@pytest.mark.parametrize("path", ASKED)
async def test_json_is_taken_out_for_clients_of_every_api(
    start: Start, http: aiohttp.ClientSession, path: str
) -> None:
    gateway = await start()

    url = f"{gateway.base_url}{path}"
    async with http.post(url, json=ASKED[path], headers=CLAUDE_HEADERS) as response:
        raw = await response.read()

    assert response.status == 200, raw
    assert "text around the JSON left out" in response.headers["x-gw-warnings"]
    assert b'"{\\"a\\": 1}"' in raw
    assert b"Here you are" not in raw
