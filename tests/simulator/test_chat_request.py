from typing import Any

import msgspec
import pytest

from cluster_gw.simulator.api_error import ApiError
from cluster_gw.simulator.chat_request import ChatRequest, decode_chat_request
from tests.simulator.bench_client import ask

CALL = {
    "role": "assistant",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "r"}
USER = {"role": "user", "content": "hello"}
TOOL = {"type": "function", "function": {"name": "f"}}


def decoded(document: Any) -> ChatRequest | ApiError:
    return decode_chat_request(msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": ""}, None),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "smell"}]}]},
            "messages[0].content[0].type",
        ),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [USER, RESULT]}, "messages[1].role"),
        ({"messages": [USER, CALL, USER]}, "messages[2].role"),
        ({"messages": [USER, CALL]}, "messages"),
        ({"n": 0}, "n"),
        ({"temperature": 2.5}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stop": list("abcde")}, "stop"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"tools": []}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
            "tool_choice",
        ),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ],
)
def test_fault_of_a_request_is_named(fields: dict[str, Any], param: str | None) -> None:
    fault = decoded({**ask(), **fields})

    assert isinstance(fault, ApiError)
    assert (fault.status, fault.type, fault.param) == (400, "invalid_request_error", param)


@pytest.mark.parametrize("body", [b"", b"{", b'{"model": "\xff"}', b"nonsense"])
def test_broken_json_is_a_400(body: bytes) -> None:
    fault = decode_chat_request(body)

    assert isinstance(fault, ApiError)
    assert "could not parse" in fault.message


def test_missing_field_is_named() -> None:
    fault = decoded({"model": "m"})

    assert isinstance(fault, ApiError)
    assert fault.param == "messages"


def test_unknown_fields_pass() -> None:
    assert isinstance(decoded({**ask(), "future_field": {"x": 1}}), ChatRequest)


def test_prompt_tokens_are_a_quarter_of_the_characters_rounded_up() -> None:
    request = decoded({"model": "m", "messages": [USER, CALL, RESULT]})

    assert isinstance(request, ChatRequest)
    assert request.prompt_tokens == 2  # 5 of the user, 2 of the arguments, 1 of the result


def test_text_parts_are_joined_and_images_counted() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    parts = [{"type": "text", "text": "ab"}, image, {"type": "text", "text": "cd"}, image]
    request = decoded({"model": "m", "messages": [{"role": "user", "content": parts}]})

    assert isinstance(request, ChatRequest)
    assert request.last_user_text == "abcd"
    assert request.image_count == 2
