"""What quirks change inside messages, tools and formats, and what they leave alone."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.providers import message_quirks
from cluster_gw.providers.message_quirks import trimmed, without_keywords
from cluster_gw.wire.json_codec import raw

Bend = Callable[[msgspec.Raw], msgspec.Raw]


def bent(bend: Bend, value: Any) -> Any:
    return msgspec.json.decode(bend(raw(value)))


def said(role: str, content: Any = "x", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def test_null_becomes_an_empty_text_and_nothing_else_changes() -> None:
    messages = [said("user"), said("assistant", None, tool_calls=[]), {"role": "assistant"}]

    found = bent(message_quirks.with_text_for_null, messages)

    assert found == [said("user"), said("assistant", "", tool_calls=[]), {"role": "assistant"}]


def test_texts_are_joined_and_images_stay() -> None:
    text, image = {"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}
    messages = [said("user", [text, text]), said("user", [text, image]), said("user", "s")]

    found = bent(message_quirks.flattened, messages)

    assert [one["content"] for one in found] == ["aa", [text, image], "s"]


def test_members_of_messages_are_left_out_by_name() -> None:
    messages = [said("assistant", reasoning_content="r", tool_calls=[1])]

    found = bent(lambda m: message_quirks.without_members(m, ("reasoning_content",)), messages)

    assert found == [said("assistant", tool_calls=[1])]


def test_keywords_go_and_properties_of_their_name_stay() -> None:
    schema = {
        "$schema": "u",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "additionalProperties": {"type": "object", "additionalProperties": True},
            "list": {"type": "array", "items": {"additionalProperties": False}},
        },
    }
    names = frozenset({"$schema", "additionalProperties"})

    found = bent(lambda tools: without_keywords(tools, names), [{"function": {"p": schema}}])

    assert found == [
        {
            "function": {
                "p": {
                    "type": "object",
                    "properties": {
                        "additionalProperties": {"type": "object"},
                        "list": {"type": "array", "items": {}},
                    },
                }
            }
        }
    ]


@pytest.mark.parametrize(
    ("asked", "given_"),
    [
        (
            {"type": "json_object"},
            {"type": "json_schema", "json_schema": {"name": "json", "schema": {"type": "object"}}},
        ),
        ({"type": "text"}, {"type": "text"}),
        (None, None),
    ],
)
def test_an_object_is_asked_for_by_a_schema(asked: Any, given_: Any) -> None:
    assert bent(message_quirks.permissive, asked) == given_


@pytest.mark.parametrize(("asked", "given_"), [("a", ["a"]), (["a"], ["a"]), (None, None)])
def test_a_lone_stop_becomes_a_list(asked: Any, given_: Any) -> None:
    assert bent(message_quirks.in_a_list, asked) == given_


def test_the_oldest_turns_go_first_and_whole() -> None:
    call = said("assistant", "x" * 40, tool_calls=[1])
    messages = [
        *(said("system", "s" * 38), said("user", "a" * 78), call, said("tool", "t" * 38)),
        *(said("assistant", "o" * 38), said("user", "b" * 38), said("assistant", "c" * 38)),
        said("user", "d" * 38),
    ]

    found = bent(lambda m: trimmed(m, 60), messages)

    assert found == [messages[0], *messages[5:]]
    assert bent(lambda m: trimmed(m, 1000), messages) == messages
    assert bent(lambda m: trimmed(m, 1), messages) == [messages[0], messages[-1]]


@given(
    st.lists(
        st.builds(said, st.sampled_from(["system", "user", "assistant", "tool"]), st.text()),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 40),
)
def test_what_is_trimmed_keeps_system_texts_the_end_and_whole_turns(
    messages: list[dict[str, Any]], most_tokens: int
) -> None:
    found = bent(lambda m: trimmed(m, most_tokens), messages)

    assert [one for one in found if one["role"] == "system"] == [
        one for one in messages if one["role"] == "system"
    ]
    spoken, all_spoken = ([o for o in m if o["role"] != "system"] for m in (found, messages))
    assert all_spoken[len(all_spoken) - len(spoken) :] == spoken
    assert spoken == all_spoken or spoken[0]["role"] == "user"
