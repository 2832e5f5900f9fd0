"""Turns are known again however their JSON is written, and summaries have bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.conversation import (
    Conversation,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Turn,
)
from cluster_gw.core.outcome.heard import FirstCall
from cluster_gw.pipeline.session_records import (
    HANDOFF_READER,
    MARK,
    MESSAGE_CHARACTERS,
    MOST_MESSAGES,
    NOTE_TOKENS,
    Handoff,
    Said,
    is_counted,
    last_messages,
    note_of,
    record_json,
    turn_digest,
    turns_before,
)


def digest(arguments: str, *, model: str = "p/m", name: str = "f", call_id: str = "c") -> str:
    return turn_digest(model, FirstCall(call_id, name, arguments))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1,"b":[2]}', ' { "b" : [2.0], "a" : 1 }'),
        ('{"a":"\\u00e9"}', '{"a":"é"}'),
        ("{}", "{ }"),
        ("not json", "not json"),
    ],
)
def test_a_turn_is_known_again_however_its_arguments_are_written(one: str, other: str) -> None:
    assert digest(one) == digest(other)


def test_other_turns_have_other_names() -> None:
    names = {
        digest("{}"),
        digest('{"a":1}'),
        digest('{"a":"1"}'),
        digest('{"a":true}'),
        digest("[" * 5000),
        digest("[" * 900 + "]" * 900),
        digest("1e300"),
        digest("9" * 400),
        digest("9" * 30),
        digest('"\ud83d"'),
        digest("{}", model="p/n"),
        digest("{}", name="g"),
        digest("{}", call_id="d"),
    }

    assert len(names) == 13


SAYS = st.builds(Said, st.sampled_from(["user", "assistant", "tool"]), st.text(max_size=700))


@given(st.lists(SAYS, max_size=20))
def test_a_note_is_within_what_is_reserved_for_it(messages: list[Said]) -> None:
    note = note_of(Handoff(model="p/m", messages=tuple(messages)))

    assert note.startswith(MARK)
    assert len(note) <= NOTE_TOKENS * 4
    assert not messages or messages[-1].text[:MESSAGE_CHARACTERS] in note


def test_a_record_is_read_as_it_was_written() -> None:
    record = Handoff(model="p/m", messages=(Said("user", "hi"), Said("assistant", "\ud83d")))

    assert HANDOFF_READER.read(record_json(record)).messages == (
        Said("user", "hi"),
        Said("assistant", "?"),
    )


def test_the_last_messages_are_cut_short_and_systems_are_left_out() -> None:
    def turn(role: Role, *parts: Text | ToolUse | ToolResult) -> Turn:
        return Turn(role=role, parts=parts)

    result = ToolResult(call_id="c", parts=(Text(text="rain"),))
    conversation = Conversation(
        turns=(
            turn(Role.SYSTEM, Text(text="secret")),
            *[turn(Role.USER, Text(text=f"{number}")) for number in range(20)],
            turn(Role.ASSISTANT, Text(text="x" * 900), ToolUse(id="c", name="f")),
            turn(Role.USER, result),
        )
    )

    said = last_messages(conversation, [Said("assistant", "done")])

    assert len(said) == MOST_MESSAGES
    assert said[-4:] == (
        Said("assistant", "x" * MESSAGE_CHARACTERS),
        Said("assistant", "[calls f]"),
        Said("tool", "rain"),
        Said("assistant", "done"),
    )
    assert "secret" not in str(said)


@pytest.mark.parametrize(
    ("call_id", "counted"),
    [
        *(("", True), ("call_0", True), ("0", True), ("functions.look_up:12", True)),
        *(("call_00_Xy7aPqR2kLmN", False), ("toolu_01AbCdEfGh", False)),
        ("chatcmpl-tool-0f3c9a7e51b24d68", False),
    ],
)
def test_ids_that_are_counted_may_be_those_of_another_answer(call_id: str, counted: bool) -> None:
    assert is_counted(FirstCall(call_id, "look_up", "{}")) is counted


def test_what_was_said_before_a_turn_is_known_by_its_words_alone() -> None:
    use = ToolUse(id="call_1", name="f", arguments="{}")
    turns = (
        Turn(role=Role.USER, parts=(Text(text="hi"),)),
        Turn(role=Role.ASSISTANT, parts=(Thinking(text="hm"), use)),
        Turn(role=Role.USER, parts=(ToolResult(call_id="call_1", name="f"),)),
    )
    bare = (turns[0], Turn(role=Role.ASSISTANT, parts=(use,)), turns[2])
    other = (Turn(role=Role.USER, parts=(Text(text="ho"),)), *turns[1:])

    known = turns_before(turns, [0, 1, 3])

    assert list(known) == [0, 1, 3]
    assert len(set(known.values())) == 3
    assert turns_before(bare, [1, 3])[1] == known[1]
    assert not set(turns_before(other, [1, 3]).values()) & set(known.values())
