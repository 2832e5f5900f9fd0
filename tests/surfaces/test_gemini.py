"""The surface of Gemini's dialect: requests, what is read of them, and errors."""

import tracemalloc
from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.conversation import (
    AnswerFormat,
    Choosing,
    Conversation,
    Media,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.gemini import CountTokens, GenerateContent
from cluster_gw.surfaces.gemini_stream import ArrayFraming

SURFACE = GenerateContent("models/m")
HEAD = StreamHead(id="0" * 32, model="m", created_s=1, is_native=False)
TEXT = {"parts": [{"text": "hi"}]}


def decode(body: Any, surface: GenerateContent = SURFACE) -> ChatRequest:
    request = surface.decode_request(msgspec.json.encode(body))
    assert isinstance(request, ChatRequest), request
    return request


def read(body: Any) -> Conversation:
    return SURFACE.read_conversation(decode(body))


def refused(body: bytes) -> ErrorBody:
    error = SURFACE.decode_request(body)
    assert isinstance(error, ErrorBody)
    return error


def test_facts_are_read_once() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    request = decode(
        {
            "systemInstruction": {"parts": [{"text": "be"}, {"text": "kind"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "one"}, image]},
                {"role": "model", "parts": [{"text": "two"}]},
                {"parts": [{"text": "three"}]},
            ],
            "generationConfig": {"maxOutputTokens": 7, "candidateCount": 2, "responseSchema": {}},
            "tools": [{"googleSearch": {}}],
        }
    )

    assert request.model == "m"
    assert (request.max_tokens, request.choices, request.image_count) == (7, 2, 1)
    assert (request.wants_tools, request.wants_format, request.has_history) == (True, True, True)
    assert request.input_characters == (6, 3, 3, 5)
    assert (request.system_text, request.first_user_text) == ("bekind", "one")
    assert request.last_user_text == "three"
    assert not request.stream


def test_a_model_may_stand_in_the_body_where_no_path_names_one() -> None:
    assert decode({"contents": TEXT, "model": "models/x"}, GenerateContent()).model == "x"


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"{", "invalid_json", None),
        (b"[]", "invalid_json", None),
        (b'{"contents":[{"parts":"x"}]}', "invalid_request", "contents[0].parts"),
        (b'{"contents":[{"parts":[{"text":1}]}]}', "invalid_request", "contents[0].parts[0].text"),
        (
            b'{"contents":{"parts":[]},"generation_config":{"max_output_tokens":"x"}}',
            "invalid_request",
            "generationConfig.maxOutputTokens",
        ),
    ],
)
def test_what_is_wrong_is_named(body: bytes, code: str, param: str | None) -> None:
    error = refused(body)

    assert (error.status, error.code, error.param) == (400, code, param)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"contents": [{}] * 20_001}, "contents"),
        ({"contents": [{"parts": [{}] * 2001}]}, "contents[0].parts"),
        ({"contents": [{"parts": [{}] * 2000}] * 26}, "contents"),
        ({"contents": [{}] * 300_001}, "contents"),
        ({"contents": [TEXT], "x": [{}] * 300_001}, None),
    ],
)
def test_a_crowd_is_refused(body: Any, param: str | None) -> None:
    error = refused(msgspec.json.encode(body))

    assert error.param == param
    assert "limit is" in error.message or "more than" in error.message


def test_names_with_underscores_are_renamed_only_where_they_are_the_formats() -> None:
    request = decode(
        {
            "contents": [
                {
                    "role": "model",
                    "parts": [
                        {"function_call": {"name": "f", "args": {"mime_type": 1}}},
                        {"inline_data": {"mime_type": "image/png", "data": "x"}},
                    ],
                }
            ],
            "tools": [{"function_declarations": [{"name": "f", "parameters": {"top_p": {}}}]}],
        }
    )

    [content] = msgspec.json.decode(request.fields["contents"])
    assert content["parts"] == [
        {"functionCall": {"name": "f", "args": {"mime_type": 1}}},
        {"inlineData": {"mimeType": "image/png", "data": "x"}},
    ]
    [tool] = msgspec.json.decode(request.fields["tools"])
    assert tool == {"functionDeclarations": [{"name": "f", "parameters": {"top_p": {}}}]}


def test_results_find_their_calls_by_name_in_order() -> None:
    call = {"functionCall": {"name": "f", "args": {"n": 1}}}
    named = {"functionCall": {"name": "g", "id": "own"}}
    conversation = read(
        {
            "contents": [
                {"role": "model", "parts": [call, call, named]},
                {
                    "role": "function",
                    "parts": [
                        {"functionResponse": {"name": "f", "response": {"result": "first"}}},
                        {"functionResponse": {"name": "f", "response": {"error": {"code": 1}}}},
                        {"functionResponse": {"id": "own", "response": {"a": 1, "b": 2}}},
                        {"functionResponse": {"name": "lost"}},
                    ],
                },
            ]
        }
    )

    spoken, answered = conversation.turns
    assert [p.id for p in spoken.parts if isinstance(p, ToolUse)] == ["call_1", "call_2", "own"]
    assert answered.role is Role.USER
    assert answered.parts == (
        ToolResult(call_id="call_1", name="f", parts=(Text(text="first"),)),
        ToolResult(call_id="call_2", name="f", parts=(Text(text='{"code":1}'),), is_error=True),
        ToolResult(call_id="own", name="g", parts=(Text(text='{"a":1,"b":2}'),)),
        ToolResult(call_id="lost", name="lost"),
    )


def test_signatures_of_thoughts_are_marked_and_those_of_others_restored() -> None:
    conversation = read(
        {
            "contents": {
                "role": "model",
                "parts": [
                    {"text": "own", "thought": True, "thoughtSignature": "c2ln"},
                    {"text": "theirs", "thought": True, "thoughtSignature": "Z3c6Y2xhdWRlc2-n_w=="},
                ],
            }
        }
    )

    assert conversation.turns[0].parts == (
        Thinking(text="own", signature="Z3c6Z2VtaW5pc2ln"),
        Thinking(text="theirs", signature="Z3c6Y2xhdWRlc2+n/w=="),
    )


def test_media_of_the_vendors_client_are_read_in_its_alphabet() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "_-8="}}

    [turn] = read({"contents": [{"parts": [image]}]}).turns

    assert turn.parts == (Media(media_type="image/png", data="/+8="),)


def test_what_has_no_words_is_named() -> None:
    conversation = read(
        {
            "contents": [{"parts": [{"text": "hi"}, {"executableCode": {}}, {"text": ""}]}],
            "systemInstruction": {"parts": [{"inlineData": {"data": "x"}}]},
            "tools": {"codeExecution": {}, "functionDeclarations": [{"name": "f"}, {"name": "g"}]},
            "toolConfig": {
                "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["g", "h"]}
            },
            "generationConfig": {
                "responseModalities": ["TEXT", "IMAGE"],
                "responseMimeType": "application/json",
                "thinkingConfig": {"thinkingBudget": -1, "thinkingLevel": "LOW"},
                "mediaResolution": "x",
                "topK": 3.0,
            },
            "safetySettings": [],
            "labels": {},
        }
    )

    assert set(conversation.lost) == {
        *("safetySettings", "generationConfig.mediaResolution", "contents[0].parts[1]"),
        *("modality IMAGE", "tools[0].codeExecution", "systemInstruction.parts[0]"),
    }
    assert [tool.name for tool in conversation.tools] == ["g"]
    assert conversation.tool_choice.how is Choosing.REQUIRED
    assert conversation.format == AnswerFormat()
    sampling = conversation.sampling
    assert (sampling.effort, sampling.thinking_tokens, sampling.top_k) == ("low", None, 3)


@pytest.mark.parametrize(
    ("budget", "effort"), [(0, "none"), (1, "low"), (1025, "medium"), (8193, "high")]
)
def test_a_budget_of_thoughts_is_an_effort_too(budget: int, effort: str) -> None:
    config = {"thinkingConfig": {"thinkingBudget": budget}}

    sampling = read({"contents": TEXT, "generationConfig": config}).sampling

    assert (sampling.effort, sampling.thinking_tokens) == (effort, budget)


def test_arguments_that_are_no_object_are_a_malformed_call() -> None:
    stream = GenerateContent("m", stream=True).stream_encoder(HEAD)
    call = ToolCallDelta(id="c", name="f", arguments='{"a":')

    sent = stream.encode(StreamEvent(tool_calls=(call,))) + stream.done()

    [frame] = sent.split(b"\n\n")[:-1]
    [candidate] = msgspec.json.decode(frame.removeprefix(b"data: "))["candidates"]
    assert candidate["finishReason"] == "MALFORMED_FUNCTION_CALL"
    assert candidate["content"]["parts"] == [{"text": ""}]


def test_calls_that_are_all_numbered_nought_are_told_apart_by_their_ids() -> None:
    stream = GenerateContent("m", stream=True).stream_encoder(HEAD)
    calls = [ToolCallDelta(id=name, name="f", arguments="{}") for name in ("a", "b")]

    sent = b"".join([stream.encode(StreamEvent(tool_calls=(one,))) for one in calls])
    sent += stream.done()

    assert (sent.count(b'"functionCall"'), sent.count(b'"id":"a"'), sent.count(b'"id":"b"')) == (
        *(2, 1, 1),
    )


def test_an_empty_array_is_still_one() -> None:
    surface = GenerateContent("m", stream=True, framing=ArrayFraming)
    error = ErrorBody(status=200, type="t", code="c", message="m", retry_after_ms=1500)

    broken = msgspec.json.decode(surface.encode_stream_error(error, "r"))
    refusal = msgspec.json.decode(surface.encode_error(error, "r"))

    assert surface.encode_keepalive().isspace()
    assert broken == refusal
    assert broken[0]["error"]["code"] == 500
    assert broken[0]["error"]["details"][1]["retryDelay"] == "1.500s"
    passed = GenerateContent("m", stream=True, framing=ArrayFraming).stream_encoder(
        msgspec.structs.replace(HEAD, is_native=True)
    )
    assert passed.done() == b"[]"


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"generateContentRequest":5}', b"{}"])
def test_what_cannot_be_counted_is_refused(body: bytes) -> None:
    assert isinstance(CountTokens("m").decode_request(body), ErrorBody)


def test_a_call_without_an_end_is_not_kept_for_ever() -> None:
    stream = GenerateContent("m", stream=True).stream_encoder(HEAD)
    piece = StreamEvent(tool_calls=(ToolCallDelta(name="f", arguments="x" * 65_536),))

    tracemalloc.start()
    assert [stream.encode(piece) for _ in range(1000)] == [b""] * 1000
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 1_048_576
    assert b"MALFORMED_FUNCTION_CALL" in stream.done()
