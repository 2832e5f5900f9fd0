"""A note stands behind what the client says as the system, in every dialect, and never twice."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.conversation import Conversation, Role, Text, Turn
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.surfaces.system_note import with_note, with_noted_turn

MARK = "note:"
NOTE = f"{MARK} go on"
USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "be kind"}
TOLD = {"role": "system", "content": NOTE}
R, A, G = Dialect.OPENAI_RESPONSES, Dialect.ANTHROPIC, Dialect.GEMINI


def request(dialect: Dialect, **fields: Any) -> ChatRequest:
    raw = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in fields.items()}
    return ChatRequest(dialect=dialect, model="m", stream=False, fields=raw)


def members(noted: ChatRequest) -> dict[str, Any]:
    return {name: msgspec.json.decode(value) for name, value in noted.fields.items()}


@pytest.mark.parametrize(
    ("dialect", "given", "expected"),
    [
        (Dialect.OPENAI, {"messages": [USER]}, {"messages": [TOLD, USER]}),
        (Dialect.OPENAI, {"messages": [SYSTEM, USER]}, {"messages": [SYSTEM, TOLD, USER]}),
        (
            Dialect.OPENAI,
            {"messages": [{"role": "developer", "content": "x"}, SYSTEM, USER, SYSTEM]},
            {"messages": [{"role": "developer", "content": "x"}, SYSTEM, TOLD, USER, SYSTEM]},
        ),
        (R, {"input": "hi"}, {"input": "hi", "instructions": NOTE}),
        (R, {"instructions": "be kind"}, {"instructions": f"be kind\n\n{NOTE}"}),
        (A, {"messages": [USER]}, {"messages": [USER], "system": NOTE}),
        (A, {"system": "be kind"}, {"system": f"be kind\n\n{NOTE}"}),
        (
            A,
            {"system": [{"type": "text", "text": "be kind", "cache_control": {"type": "x"}}]},
            {
                "system": [
                    {"type": "text", "text": "be kind", "cache_control": {"type": "x"}},
                    {"type": "text", "text": NOTE},
                ]
            },
        ),
        (G, {"contents": []}, {"contents": [], "systemInstruction": {"parts": [{"text": NOTE}]}}),
        (
            G,
            {"systemInstruction": {"role": "system", "parts": [{"text": "be kind"}]}},
            {
                "systemInstruction": {
                    "role": "system",
                    "parts": [{"text": "be kind"}, {"text": NOTE}],
                }
            },
        ),
        (
            G,
            {"systemInstruction": "be kind"},
            {"systemInstruction": {"parts": [{"text": "be kind"}, {"text": NOTE}]}},
        ),
    ],
)
def test_a_note_stands_behind_the_system_and_only_once(
    dialect: Dialect, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    asked = request(dialect, **given)

    noted = with_note(asked, NOTE, MARK)

    assert members(noted) == expected
    assert members(asked) == given
    assert with_note(noted, NOTE, MARK) is noted


@pytest.mark.parametrize(
    ("dialect", "given"),
    [
        (Dialect.OPENAI, {"messages": 5}),
        (Dialect.OPENAI, {"messages": [{"role": "system", "content": [{"text": NOTE}]}, USER]}),
        (A, {"system": 5}),
        (G, {"systemInstruction": 5}),
    ],
)
def test_what_is_odd_or_noted_stays(dialect: Dialect, given: dict[str, Any]) -> None:
    asked = request(dialect, **given)

    assert with_note(asked, NOTE, MARK) is asked


def test_a_user_who_quotes_the_mark_hides_no_note() -> None:
    asked = request(Dialect.OPENAI, messages=[{"role": "user", "content": NOTE}])

    assert members(with_note(asked, NOTE, MARK))["messages"][0] == TOLD


def test_a_conversation_is_noted_behind_its_leading_system_turns() -> None:
    system, user = (Turn(role=role, parts=(Text(text="x"),)) for role in (Role.SYSTEM, Role.USER))
    noted = with_noted_turn(Conversation(turns=(system, system, user)), NOTE, MARK)

    assert [turn.text for turn in noted.turns] == ["x", "x", NOTE, "x"]
    assert with_noted_turn(noted, NOTE, MARK) is noted


def test_a_note_that_was_joined_to_other_text_is_known_too() -> None:
    joined = Turn(role=Role.SYSTEM, parts=(Text(text=f"be kind\n\n{NOTE}"),))
    conversation = Conversation(turns=(joined,))

    assert with_noted_turn(conversation, NOTE, MARK) is conversation


ODD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers(0, 9) | st.sampled_from(["system", "user", "", f"x\n{NOTE}"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "content", "text", "parts"]), inner)
    ),
    max_leaves=12,
)


@given(ODD, st.sampled_from(list(Dialect)))
def test_whatever_a_client_sends_is_noted_once_or_left_alone(value: Any, dialect: Dialect) -> None:
    names = ("messages", "system", "systemInstruction", "instructions")
    asked = request(dialect, **dict.fromkeys(names, value))

    noted = with_note(asked, NOTE, MARK)

    assert members(asked) == dict.fromkeys(names, value)
    assert noted is asked or with_note(noted, NOTE, MARK) is noted
