"""Requests of other dialects as messages: what is changed, what is lost, and that both are said."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.conversation import (
    AnswerFormat,
    Choosing,
    Conversation,
    Media,
    Part,
    Refusal,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolChoice,
    ToolResult,
    ToolUse,
    Turn,
)
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.wire.anthropic_messages import SIGNED

HELLO = Turn(role=Role.USER, parts=(Text(text="hi"),))


def user(*parts: Part) -> Turn:
    return Turn(role=Role.USER, parts=parts)


def model(*parts: Part) -> Turn:
    return Turn(role=Role.ASSISTANT, parts=parts)


def system(*texts: str) -> Turn:
    return Turn(role=Role.SYSTEM, parts=tuple(Text(text=text) for text in texts))


def written(
    *turns: Turn, **members: Any
) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    """The document, what was lost and what was changed."""
    conversation = Conversation(turns=turns or (HELLO,), **members)
    translated = AnthropicProvider().encode_conversation(conversation, "up")
    return msgspec.json.decode(translated.body), translated.lost, translated.changed


def test_system_texts_stand_before_all_others_and_a_move_is_named() -> None:
    document, lost, changed = written(system("one"), HELLO, system("two", " "), HELLO)

    assert document["system"] == [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert len(document["messages"]) == 2
    assert lost == ()
    assert changed == ("turn 3: system -> before all others",)


def test_blank_texts_and_turns_without_anything_are_left_out() -> None:
    document, _, _ = written(HELLO, model(Text(text="  ")), user(Text(text=""), Text(text="x")))

    assert [one["content"] for one in document["messages"]] == ["hi", "x"]


def test_results_stand_before_words_and_failures_are_marked() -> None:
    failed = ToolResult(call_id="a.b", parts=(Text(text="no"), Text(text="way")), is_error=True)

    document, _, _ = written(user(Text(text="so"), failed, ToolResult(call_id="c")))

    assert document["messages"][0]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "a_b",
            "content": [{"type": "text", "text": "no"}, {"type": "text", "text": "way"}],
            "is_error": True,
        },
        {"type": "tool_result", "tool_use_id": "c"},
        {"type": "text", "text": "so"},
    ]


def test_only_what_the_vendor_signed_is_a_thought() -> None:
    own = Thinking(text="x", signature=SIGNED + "s")
    hidden = Thinking(signature=SIGNED + "d", is_redacted=True)

    document, lost, _ = written(HELLO, model(Thinking(text="y"), own, hidden, Refusal(text="no")))

    assert document["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "x", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "text", "text": "no"},
    ]
    assert lost == ("turn 2: thinking",)


@pytest.mark.parametrize(("arguments", "is_changed"), [("", False), ("[1]", True), ("{", True)])
def test_arguments_are_an_object_whatever_they_were(arguments: str, is_changed: bool) -> None:
    call = ToolUse(id="x:1", name="f", arguments=arguments, signature="s")

    document, lost, changed = written(HELLO, model(call))

    [block] = document["messages"][1]["content"]
    assert block == {"type": "tool_use", "id": "x_1", "name": "f", "input": {}}
    assert lost == ("turn 2: signature of a call",)
    assert bool(changed) is is_changed


def test_media_that_the_vendor_does_not_take_are_named() -> None:
    document, lost, _ = written(
        user(
            Media(media_type="audio/wav", data="x"),
            Media(media_type="text/csv", data="x"),
            Media(media_type="image/tiff", data="x"),
            Media(media_type="application/pdf", url="https://x.example/a.pdf", name="a"),
            Media(data="x"),
            ToolResult(call_id="c", parts=(Media(media_type="audio/wav", data="x"),)),
        )
    )

    kinds = [(one["type"], one.get("source")) for one in document["messages"][0]["content"]]
    assert kinds == [
        ("tool_result", None),
        ("document", {"type": "url", "url": "https://x.example/a.pdf"}),
        ("document", {"type": "base64", "media_type": "application/pdf", "data": "x"}),
    ]
    assert len(lost) == 4


def test_chances_that_the_vendor_refuses_are_lowered_or_left_out() -> None:
    document, lost, changed = written(
        sampling=Sampling(
            temperature=1.7, top_p=0.5, seed=1, presence_penalty=0.1, choices=3, top_logprobs=0,
            stop=("\n", "END"),
        )
    )  # fmt: skip

    assert document["temperature"] == 1.0
    assert document["stop_sequences"] == ["END"]
    assert document["max_tokens"] == 4096
    assert "top_p" not in document
    assert lost == (
        "top_p (beside temperature)",
        "blank stop",
        "seed",
        "presence_penalty",
        "logprobs",
    )
    assert changed == ("temperature 1.7 -> 1", "n 3 -> 1")


@pytest.mark.parametrize(
    ("sampling", "budget"),
    [
        (Sampling(effort="low"), 1024),
        (Sampling(effort="medium"), 8192),
        (Sampling(effort="xhigh"), 32_768),
        (Sampling(effort="high", thinking_tokens=2000), 2000),
        (Sampling(thinking_tokens=5), 1024),
        (Sampling(effort="high", max_tokens=4000), 3000),
    ],
)
def test_effort_is_a_budget_within_the_bound_of_the_output(sampling: Sampling, budget: int) -> None:
    chosen = msgspec.structs.replace(sampling, temperature=0.5, shows_thinking=False)

    document, lost, _ = written(sampling=chosen)

    assert document["thinking"] == {
        "type": "enabled",
        "budget_tokens": budget,
        "display": "omitted",
    }
    assert document["max_tokens"] == (sampling.max_tokens or 4096 + budget)
    assert lost == ("temperature (while thinking)",)


@pytest.mark.parametrize("effort", ["none", "minimal", None])
def test_no_effort_is_no_thought(effort: str | None) -> None:
    document, lost, _ = written(sampling=Sampling(effort=effort))

    assert "thinking" not in document
    assert lost == ()


def test_thoughts_that_the_vendor_would_refuse_are_not_asked_for() -> None:
    high = Sampling(effort="high")
    tools = (Tool(name="f"),)
    signed = Thinking(text="x", signature=SIGNED + "s")
    call, result = ToolUse(id="c", name="f"), user(ToolResult(call_id="c"))

    forced = written(sampling=high, tools=tools, tool_choice=ToolChoice(how=Choosing.REQUIRED))
    unsigned = written(HELLO, model(call), result, sampling=high, tools=tools)
    narrow = written(sampling=Sampling(effort="high", max_tokens=1365))
    fine = written(HELLO, model(signed, call), result, sampling=high, tools=tools)

    for (document, lost, _), why in (
        (forced, "a tool is forced"),
        (unsigned, "calls without signed thoughts"),
        (narrow, "max_tokens is too low"),
    ):
        assert "thinking" not in document
        assert lost == (f"reasoning effort ({why})",)
    assert fine[0]["thinking"]["budget_tokens"] == 24_576


def test_output_without_a_schema_is_lost() -> None:
    schema = msgspec.Raw(b'{"type":"object"}')

    free = written(format=AnswerFormat())
    bound = written(format=AnswerFormat(name="n", schema=schema))

    assert free[1] == ("response_format (json_object)",)
    assert bound[0]["output_config"] == {
        "format": {"type": "json_schema", "schema": {"type": "object"}}
    }


def test_tools_and_choices_are_written() -> None:
    tools = (Tool(name="f", description="d", is_strict=True), Tool(name="g"))

    document, _, _ = written(
        tools=tools, tool_choice=ToolChoice(how=Choosing.NAMED, name="g", parallel=False)
    )
    none, _, _ = written(tools=tools, tool_choice=ToolChoice(how=Choosing.NONE, parallel=True))

    empty = {"type": "object", "properties": {}}
    assert document["tools"] == [
        {"name": "f", "description": "d", "input_schema": empty, "strict": True},
        {"name": "g", "input_schema": empty},
    ]
    assert document["tool_choice"] == {
        "type": "tool",
        "name": "g",
        "disable_parallel_tool_use": True,
    }
    assert none["tool_choice"] == {"type": "none"}


def test_label_of_a_user_and_the_wish_for_a_stream_are_told() -> None:
    document, lost, _ = written(user="u", stream=True)

    assert lost == ()
    assert document["metadata"] == {"user_id": "u"}
    assert document["stream"] is True
