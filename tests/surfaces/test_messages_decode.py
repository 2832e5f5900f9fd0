"""Requests of the messages API: facts for routing, bounds, and the conversation they hold."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.conversation import (
    Choosing,
    Media,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces import SURFACES
from cluster_gw.surfaces.messages import Messages
from cluster_gw.surfaces.messages_models import Page, encode_vendor_models
from cluster_gw.surfaces.models import ListedModel
from cluster_gw.wire.anthropic_messages import SIGNED
from cluster_gw.wire.json_codec import UnexpectedShapeError

SURFACE = Messages()
DATA = {"type": "base64", "media_type": "image/png", "data": "aGk="}


def decode(body: Any) -> ChatRequest | ErrorBody:
    if isinstance(body, dict):
        body = {"max_tokens": 9, **body}
    return SURFACE.decode_request(body if isinstance(body, bytes) else msgspec.json.encode(body))


def request(*messages: dict[str, Any], **fields: Any) -> ChatRequest:
    given = list(messages) or [{"role": "user", "content": "hi"}]
    decoded = decode({"messages": given, **fields})
    assert isinstance(decoded, ChatRequest), decoded
    return decoded


def refusal(body: Any) -> ErrorBody:
    decoded = decode(body)
    assert isinstance(decoded, ErrorBody)
    return decoded


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_surface_is_in_the_table() -> None:
    assert SURFACES["/v1/messages"].dialect is Dialect.ANTHROPIC


def test_facts_are_read_off_a_request() -> None:
    result = {
        "type": "tool_result",
        "tool_use_id": "t",
        "content": [text("abc"), {"type": "image"}],
    }
    asked = request(
        user({"type": "image", "source": DATA}, text("first")),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "input": {"a": 1}}]},
        user(result),
        {"role": "user", "content": "last"},
        model="m",
        stream=True,
        max_tokens=7,
        system=[text("sys"), text("tem")],
        tools=[{"name": "f"}],
        metadata={"user_id": "u"},
        output_config={"format": {"type": "json_schema", "schema": {}}},
    )

    assert (asked.model, asked.stream, asked.max_tokens, asked.user) == ("m", True, 7, "u")
    assert asked.wants_tools
    assert asked.wants_format
    assert asked.include_usage
    assert asked.image_count == 2
    assert asked.system_text == "system"
    assert (asked.first_user_text, asked.last_user_text) == ("first", "last")
    assert asked.has_history
    assert asked.input_characters == (6, len('{"name":"f"}'), 5, len('{"a":1}'), 3, 4)


def test_documents_count_as_what_they_probably_hold() -> None:
    plain = {"type": "document", "source": {"type": "text", "data": "x" * 50}}
    pdf = {"type": "document", "source": {"type": "base64", "data": "x" * 90_000}}
    inside = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "document"}]}
    string = {"type": "tool_result", "tool_use_id": "t", "content": "abc"}

    assert request(user(plain)).input_characters == (50,)
    assert request(user(pdf)).input_characters == (8000,)
    assert request(user(inside, string)).input_characters == (8003,)


def test_other_models_and_providers_may_be_wished_for() -> None:
    asked = request(models=["a", "b"], provider={"only": ["p"], "x": 1})

    assert asked.wishes is not None
    assert asked.wishes.models == ("a", "b")
    assert asked.wishes.only == ("p",)
    assert "models" not in asked.fields
    assert msgspec.json.decode(asked.fields["provider"]) == {"x": 1}


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"{", "invalid_json", None),
        (b"[]", "invalid_json", None),
        ({}, "invalid_request", "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
         "invalid_request", "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": "x"}], "top_k": "x"},
         "invalid_request", "top_k"),
    ],
)  # fmt: skip
def test_fault_of_a_body_is_named(body: Any, code: str, param: str | None) -> None:
    error = refusal(body)

    assert (error.status, error.code, error.param) == (400, code, param)


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([user(*[text("")] * 2001)], "messages[0].content"),
        (
            [user({"type": "tool_result", "content": [text("")] * 2001})],
            "messages[0].content[0].content",
        ),
        ([{"role": "user", "content": ""}] * 20_001, "messages"),
        ([user(*[text("")] * 2000)] * 26, "messages"),
        ([user(*[text("")] * 2000)] * 160, None),
    ],
)
def test_crowded_request_is_refused_with_its_bound(messages: Any, param: str | None) -> None:
    error = refusal({"messages": messages})

    assert (error.code, error.param) == ("invalid_request", param)
    assert any(character.isdigit() for character in error.message)


def test_conversation_holds_every_block() -> None:
    asked = request(
        user(
            text("look"),
            text(""),
            {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}},
            {"type": "image", "source": DATA},
            {"type": "image", "source": {"type": "file", "file_id": "f"}},
            {
                "type": "document",
                "title": "T",
                "source": {**DATA, "media_type": "application/pdf"},
                "citations": {"enabled": True},
            },
            {"type": "document", "source": {"type": "text", "data": "plain"}},
            {"type": "document", "source": {"type": "content", "content": [text("a"), text("b")]}},
            {"type": "search_result", "title": "T", "source": "https://s", "content": [text("c")]},
            {"type": "container_upload", "file_id": "f"},
        )
    )

    conversation = SURFACE.read_conversation(asked)

    assert conversation.turns[0].parts == (
        Text(text="look"),
        Media(media_type="image/*", url="https://x.example/a.png"),
        Media(media_type="image/png", data="aGk="),
        Media(media_type="application/pdf", data="aGk=", name="T"),
        Text(text="plain"),
        Text(text="ab"),
        Text(text="T\nhttps://s\nc"),
    )
    assert conversation.lost == (
        "messages[0].content[4] (image of a file)",
        "messages[0].content[5].citations",
        "messages[0].content[9] (container_upload)",
    )


def test_thoughts_keep_whose_they_are() -> None:
    asked = request(
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "own", "signature": "s"},
            {"type": "thinking", "thinking": "other", "signature": "gw:xyz"},
            {"type": "thinking", "thinking": "none", "signature": "gw:"},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "thinking", "thinking": "", "signature": "gw-call:proof"},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
            {"type": "thinking", "thinking": "last", "signature": "gw-call:more"},
            {"type": "tool_use", "id": "b", "name": "f"},
        ]},
    )  # fmt: skip

    [turn] = SURFACE.read_conversation(asked).turns

    assert turn.role is Role.ASSISTANT
    assert turn.parts == (
        Thinking(text="own", signature=SIGNED + "s"),
        Thinking(text="other", signature="xyz"),
        Thinking(text="none"),
        Thinking(signature=SIGNED + "d", is_redacted=True),
        ToolUse(id="a", name="f", arguments='{"x":1}', signature="proof"),
        Thinking(text="last"),
        ToolUse(id="b", name="f", arguments="{}", signature="more"),
    )


def test_results_are_read_with_what_is_inside_them() -> None:
    asked = request(
        user(
            {"type": "tool_result", "tool_use_id": "a", "content": "words"},
            {"type": "tool_result", "tool_use_id": "b", "is_error": True},
            {"type": "tool_result", "tool_use_id": "c", "content": [
                text("x"), text(""), {"type": "image", "source": DATA}, {"type": "tool_reference"},
            ]},
            {"type": "web_search_tool_result", "content": {"type": "error"}},
        )
    )  # fmt: skip

    conversation = SURFACE.read_conversation(asked)

    assert conversation.turns[0].parts == (
        ToolResult(call_id="a", parts=(Text(text="words"),)),
        ToolResult(call_id="b", is_error=True),
        ToolResult(call_id="c", parts=(Text(text="x"), Media(media_type="image/png", data="aGk="))),
    )
    assert conversation.lost == (
        "messages[0].content[2].content[3] (tool_reference)",
        "messages[0].content[3] (web_search_tool_result)",
    )


def test_tools_of_the_vendor_and_unknown_members_are_lost_and_named() -> None:
    asked = request(
        tools=[
            {"type": "web_search_20250305", "name": "web_search"},
            {"name": "f", "type": "custom"},
        ],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        container="c",
        service_tier="auto",
        output_format={"type": "grammar"},
        thinking={"type": "between_tools"},
    )

    conversation = SURFACE.read_conversation(asked)

    assert [tool.name for tool in conversation.tools] == ["f"]
    assert conversation.tool_choice.how is Choosing.AUTO
    assert conversation.tool_choice.parallel is False
    assert conversation.format is None
    assert set(conversation.lost) == {
        "container",
        "tools[0] (web_search_20250305)",
        "output_config.format (grammar)",
        "thinking (between_tools)",
    }


@pytest.mark.parametrize(
    ("fields", "effort", "budget", "shows"),
    [
        ({}, None, None, None),
        ({"thinking": {"type": "enabled", "budget_tokens": 4096}}, "low", 4096, None),
        ({"thinking": {"type": "enabled", "budget_tokens": 16_384}}, "medium", 16_384, None),
        ({"thinking": {"type": "enabled", "budget_tokens": 16_385}}, "high", 16_385, None),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "low"}}, None, 0, None),
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, None, None, False),
        ({"output_config": {"effort": "max"}}, "xhigh", None, None),
        ({"thinking": {"type": "enabled"}}, None, None, None),
    ],
)
def test_thinking_is_effort_and_budget(
    fields: dict[str, Any], effort: str | None, budget: int | None, shows: bool | None
) -> None:
    sampling = SURFACE.read_conversation(request(**fields)).sampling

    assert (sampling.effort, sampling.thinking_tokens, sampling.shows_thinking) == (
        effort,
        budget,
        shows,
    )


def test_member_of_another_shape_is_named_when_the_whole_is_read() -> None:
    with pytest.raises(UnexpectedShapeError) as caught:
        SURFACE.read_conversation(request(tools=[{"description": "no name"}]))

    assert caught.value.path == "tools[0].name"


def test_page_of_models_ends_where_it_is_told() -> None:
    models = [ListedModel(id=name, owned_by="p") for name in "abcde"]

    def shown(**bounds: Any) -> tuple[str, bool]:
        page = msgspec.json.decode(encode_vendor_models(models, Page(**bounds)))
        assert page["first_id"] == (page["data"][0]["id"] if page["data"] else None)
        return "".join(one["id"] for one in page["data"]), page["has_more"]

    assert shown() == ("abcde", False)
    assert shown(limit=2) == ("ab", True)
    assert shown(after="b", limit=2) == ("cd", True)
    assert shown(before="d", limit=2) == ("bc", True)
    assert shown(after="e") == ("", False)
    assert shown(after="nothing", limit=9) == ("abcde", False)


def test_model_tells_its_window_and_why_it_is_away() -> None:
    model = ListedModel(
        id="m", owned_by="p", context_window=9, available=False, unavailable_reason="no_key"
    )

    [entry] = msgspec.json.decode(encode_vendor_models([model], Page()))["data"]

    assert entry["max_input_tokens"] == 9
    assert entry["unavailable_reason"] == "no_key"
