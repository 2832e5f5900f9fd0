"""A chat request that leaves as a chat request by way of a conversation says the same."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.conversation import Media, Text, Thinking, ToolResult
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.chat_conversation import conversation_of

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CALL = {
    "id": "call_7",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city":"Rome"}'},
}
TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "of a city", "parameters": SCHEMA},
}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
USER = {"role": "user", "content": "hello"}


def request_of(**members: Any) -> ChatRequest:
    body = {"model": "m", "messages": [USER], **members}
    request = ChatCompletions().decode_request(msgspec.json.encode(body))
    assert isinstance(request, ChatRequest)
    return request


def sent_again(**members: Any) -> dict[str, Any]:
    conversation = conversation_of(request_of(**members))
    translated = OpenAIChatProvider().encode_conversation(conversation, "up")
    assert (conversation.lost, translated.lost, translated.changed) == ((), (), ())
    document: dict[str, Any] = msgspec.json.decode(translated.body)
    assert document.pop("model") == "up"
    return document


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"messages": [{"role": "system", "content": "be brief"}, USER]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "see"}, PICTURE]}]},
        {
            "messages": [
                USER,
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "tool_call_id": "call_7", "content": "sunny"},
            ],
            "tools": [TOOL],
        },
        {
            "messages": [USER, {"role": "assistant", "content": None, "refusal": "no"}, USER],
        },
        {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False},
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "weather"}}},
        {"response_format": {"type": "json_object"}},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "place", "schema": SCHEMA, "strict": True},
            }
        },
        {
            "temperature": 0.5,
            "top_p": 0.9,
            "seed": 7,
            "presence_penalty": 0.1,
            "frequency_penalty": -0.1,
            "stop": ["END"],
            "n": 2,
            "max_tokens": 10,
            "reasoning_effort": "low",
            "logprobs": True,
            "top_logprobs": 3,
            "user": "u1",
        },
        {"stream": True, "stream_options": {"include_usage": True}},
    ],
)
def test_request_by_way_of_a_conversation_says_the_same(members: dict[str, Any]) -> None:
    assert sent_again(**members) == {"messages": [USER], **members}


def test_names_of_old_are_said_in_todays_words() -> None:
    function = {"name": "weather", "parameters": SCHEMA}

    sent = sent_again(
        functions=[function], function_call={"name": "weather"}, max_completion_tokens=5
    )

    assert sent["tools"] == [{"type": "function", "function": function}]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    assert sent["max_tokens"] == 5


def test_results_that_follow_each_other_are_one_turn() -> None:
    conversation = conversation_of(
        request_of(
            messages=[
                USER,
                {"role": "assistant", "tool_calls": [CALL, {**CALL, "id": "call_8"}]},
                {"role": "tool", "tool_call_id": "call_7", "content": "a"},
                {"role": "tool", "tool_call_id": "call_8", "content": "b"},
            ]
        )
    )

    assert conversation.turns[-1].parts == (
        ToolResult(call_id="call_7", parts=(Text(text="a"),)),
        ToolResult(call_id="call_8", parts=(Text(text="b"),)),
    )


def test_what_no_other_dialect_knows_is_named() -> None:
    file = {"type": "file", "file": {"file_id": "file-1"}}
    conversation = conversation_of(
        request_of(messages=[{"role": "user", "content": ["x", file]}], logit_bias={"1": 2})
    )

    assert conversation.lost == ("logit_bias", "messages[0].content[1]")


def test_thoughts_and_sounds_are_parts_of_a_turn() -> None:
    sound = {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}
    conversation = conversation_of(
        request_of(
            messages=[
                {"role": "user", "content": [sound]},
                {"role": "assistant", "content": "so", "reasoning_content": "hm"},
            ]
        )
    )

    assert conversation.turns[0].parts == (Media(media_type="audio/wav", data="AA"),)
    assert conversation.turns[1].parts == (Thinking(text="hm"), Text(text="so"))
