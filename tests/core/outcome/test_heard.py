from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Text, Thinking, ToolUse
from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.core.outcome.heard import MOST_ARGUMENTS, FirstCall, Heard, first_of


def heard(*events: StreamEvent, **most: int) -> Heard:
    found = Heard(**{"most_thoughts": 100, "most_words": 5, **most})
    for event in events:
        found.add(event)
    return found


def call(arguments: str = "", **fields: Any) -> StreamEvent:
    return StreamEvent(tool_calls=(ToolCallDelta(arguments=arguments, **fields),))


@given(st.lists(st.integers(1, 5), max_size=10))
def test_any_split_of_an_answer_is_heard_as_the_whole(cuts: list[int]) -> None:
    arguments, thought, words = '{"city":"Bonn"}', "it must be Bonn", "well then"
    pieces = [call(id="c1", name="weather", signature="s")]
    place = 0
    for cut in [*cuts, len(arguments)]:
        end = place + cut
        pieces.append(
            StreamEvent(
                text=words[place:end],
                reasoning=thought[place:end],
                tool_calls=(ToolCallDelta(arguments=arguments[place:end]),),
            )
        )
        place = end
    whole = Heard(most_thoughts=100, most_words=5)
    use = ToolUse(id="c1", name="weather", arguments=arguments, signature="s")
    whole.add_answer(
        Answer(choices=(Choice(parts=(Thinking(text=thought), Text(text=words), use)),))
    )

    found = heard(*pieces)

    for one in (found, whole):
        assert one.first_call == FirstCall("c1", "weather", arguments)
        assert (one.thoughts, one.words, one.signatures) == (thought, "well ", ("s",))


def test_fragments_of_parallel_calls_stay_apart() -> None:
    found = heard(
        call('{"a"', index=0, id="c1", name="x"),
        call("{}", index=1, id="c2", name="y", signature="s2"),
        call(":1}", index=0),
        call("{}", index=0, id="c3", name="z"),  # some vendors number all of them 0
    )

    assert found.first_call == FirstCall("c1", "x", '{"a":1}')
    assert found.signatures == ("", "s2", "")


def test_a_call_without_an_id_is_known_by_its_place() -> None:
    assert heard(call("{}", name="x")).first_call == FirstCall("call_0", "x", "{}")
    assert first_of([ToolUse(id="", name="x")]) == FirstCall("call_0", "x", "{}")
    assert first_of([]) is None


def test_a_thought_that_is_too_long_is_not_gathered() -> None:
    found = heard(StreamEvent(reasoning="x" * 60), StreamEvent(reasoning="x" * 60), call(id="c"))

    assert found.is_too_long
    assert found.thoughts == ""
    assert found.first_call is None


def test_arguments_that_are_too_long_are_not_either() -> None:
    found = heard(*[call("x" * (MOST_ARGUMENTS // 2), id="c1")] * 3)

    assert found.is_too_long


def test_unwanted_thoughts_and_words_are_not_gathered() -> None:
    found = heard(StreamEvent(reasoning="x", text="y"), most_thoughts=0, most_words=0)

    assert (found.thoughts, found.words, found.is_too_long) == ("", "", False)
