import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Text, Thinking, ToolUse
from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.core.outcome.heard import MOST_ARGUMENTS, FirstCall, Heard, first_of

PIECES = 4_000


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


@pytest.mark.parametrize("piece", ["\N{DUCK}", "ab"])
def test_tiny_pieces_take_little_more_than_what_they_say(piece: str) -> None:
    found = Heard(most_thoughts=MOST_ARGUMENTS, most_words=MOST_ARGUMENTS)
    found.add(call(id="c1", name="x"))
    tracemalloc.start()
    for _ in range(PIECES):
        fresh = "".join([piece[:1], piece[1:]])
        found.add(
            StreamEvent(text=fresh, reasoning=fresh, tool_calls=(ToolCallDelta(arguments=fresh),))
        )
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert found.words == found.thoughts == piece * PIECES
    assert found.first_call == FirstCall("c1", "x", piece * PIECES)
    assert kept <= 1.3 * 3 * len(piece.encode()) * PIECES


def test_nothing_is_gathered_behind_what_is_too_long() -> None:
    found = Heard(most_thoughts=MOST_ARGUMENTS, most_words=5)
    found.add(call("x" * MOST_ARGUMENTS, id="c1", name="x"))
    tracemalloc.start()
    for _ in range(20):
        found.add(call("".join(["x"] * 50_000)))
        found.add(StreamEvent(reasoning="".join(["x"] * 50_000)))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert found.is_too_long
    assert (found.thoughts, found.first_call) == ("", None)
    assert kept < 60_000


def test_endless_names_and_proofs_of_calls_are_not_gathered() -> None:
    found = Heard(most_thoughts=10)
    for number in range(10):
        found.add(call("{}", index=number, id=f"c{number}", name="x" * 40_000))

    assert found.is_too_long
    assert found.signatures == ()
    assert found.last_words is None  # it called something


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
