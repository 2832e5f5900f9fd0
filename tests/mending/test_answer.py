"""Whole answers: the way of a stream, then folding and JSON."""

import pytest

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import (
    AnswerFormat,
    Media,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolUse,
)
from cluster_gw.canonical.failure import Fault
from cluster_gw.mending.answer import FOLDED, HEALED, Mended, mend
from cluster_gw.mending.stream import REPAIRED, RESCUED, THOUGHTS
from tests.mending.telling import mender

CALL = '<function=look>{"city": "Ulm"}</function>'
IMAGE = Media(media_type="image/png", data="aGk=")


def answer(*parts: Part, reason: str = "stop") -> Answer:
    return Answer(choices=(Choice(parts=parts, finish_reason=reason),))


def mended(before: Answer, **how: object) -> Mended:
    found = mend(before, mender, **how)  # type: ignore[arg-type]
    assert isinstance(found, Mended), found
    return found


@pytest.mark.parametrize(
    "before",
    [
        answer(Text(text="Hi")),
        answer(Thinking(text="hm", signature="s"), Text(text="Hi"), IMAGE),
        answer(ToolUse(id="c", name="list", arguments='{"items": []}'), reason="tool_calls"),
        answer(Refusal(text="No.")),
        answer(),
    ],
)
def test_answer_that_needs_nothing_is_the_one_that_came(before: Answer) -> None:
    assert mended(before, folds=True).answer is before


def test_thoughts_and_calls_leave_the_text() -> None:
    before = answer(Thinking(text="a", signature="s"), Text(text=f"<think>b</think>{CALL}"), IMAGE)

    found = mended(before)

    assert found.answer == answer(
        Thinking(text="a", signature="s"),
        Thinking(text="b"),
        IMAGE,
        ToolUse(id="call_x0", name="look", arguments='{"city": "Ulm"}'),
        reason="tool_calls",
    )
    assert found.done == (THOUGHTS, RESCUED)


def test_texts_that_stay_are_the_parts_that_came() -> None:
    before = answer(
        Text(text="One."),
        Text(text="Two."),
        ToolUse(id="c", name="list", arguments='{"items": "[1]"}', signature="s"),
    )

    found = mended(before)

    assert found.answer == answer(
        Text(text="One."),
        Text(text="Two."),
        ToolUse(id="c", name="list", arguments='{"items":[1]}', signature="s"),
        reason="tool_calls",
    )
    assert found.done == (REPAIRED,)


def test_each_choice_is_mended_by_itself() -> None:
    sound = Choice(parts=(Text(text="Hi"),))
    before = Answer(choices=(sound, Choice(parts=(Text(text="<think>a</think>b"),)), sound))

    first, second, third = mended(before).answer.choices

    assert (first is sound, third is sound) == (True, True)
    assert second.parts == (Thinking(text="a"), Text(text="b"))


def test_reasoning_alone_is_the_text() -> None:
    found = mended(answer(Thinking(text="All"), Text(text=" ")), folds=True)

    assert (found.answer, found.done) == (answer(Text(text="All")), (FOLDED,))


@pytest.mark.parametrize(
    "before",
    [
        answer(Thinking(text="cut"), reason="length"),
        answer(Thinking(text=" ")),
        answer(Thinking(text="a"), IMAGE),
        answer(Thinking(text="a"), Refusal(text="No.")),
    ],
)
def test_other_reasoning_stays_reasoning(before: Answer) -> None:
    assert mended(before, folds=True).answer is before


def test_json_is_taken_out_after_the_thoughts() -> None:
    before = answer(Text(text='<think>{"no": 1}</think>Here: {"a": 1}.'))

    found = mended(before, wanted=AnswerFormat())

    assert found.answer == answer(Thinking(text='{"no": 1}'), Text(text='{"a": 1}'))
    assert found.done == (THOUGHTS, HEALED)


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (answer(Text(text="No JSON.")), "gate.format_ignored"),
        (answer(Text(text='{"a": '), reason="length"), "gate.truncated_json"),
        (answer(Text(text='<tool_call>{"name": "look", "ar')), "gate.inline_call"),
    ],
)
def test_answer_that_cannot_be_mended_is_a_fault(before: Answer, reason: str) -> None:
    found = mend(before, mender, wanted=AnswerFormat())

    assert isinstance(found, Fault)
    assert found.reason == reason


@pytest.mark.parametrize(
    "before",
    [
        answer(Text(text="I look."), ToolUse(id="c", name="look"), reason="tool_calls"),
        answer(Refusal(text="No."), Text(text="Sorry.")),
        answer(Text(text="Filtered"), reason="content_filter"),
        answer(Text(text=" ")),
        answer(Text(text=' {"a": 1} ')),
    ],
)
def test_json_is_asked_of_nothing_but_words(before: Answer) -> None:
    assert mended(before, wanted=AnswerFormat()).answer is before
