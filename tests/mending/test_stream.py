"""Laws and examples of mending a stream of events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta, Usage
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.mending.stream import MOST_BLANK_EVENTS, RESCUED, THOUGHTS
from tests.mending.telling import CALLS, DONE, STOP, Heard, called, heard, mended, mender, said

SIZES = st.lists(st.integers(1, 9), max_size=40)
BLANKS = st.sampled_from(["", "\n", " \n\n"])
TAGS = st.sampled_from(["think", "thinking", "thought", "THINK"])
WORDS = st.text(alphabet='abc<>/{}"think: \n', max_size=40)
SOLID = WORDS.filter(lambda text: bool(text.strip()))
CALL = '<tool_call>{"name": "look", "arguments": {"city": "Ulm"}}</tool_call>'


@given(WORDS.filter(lambda w: not w.lstrip().startswith(("<", "{", "`"))), SIZES)
def test_text_that_is_plain_passes_as_the_very_events_that_came(
    text: str, sizes: list[int]
) -> None:
    events = [*said(text, sizes), STOP, DONE]

    told = mended(mender(), events)

    assert len(told) == len(events)
    assert all(after is before for after, before in zip(told, events, strict=True))


@given(tag=TAGS, before=BLANKS, thought=WORDS, after=BLANKS, text=WORDS, sizes=SIZES)
def test_thought_in_tags_is_reasoning_however_it_is_cut(
    tag: str, before: str, thought: str, after: str, text: str, sizes: list[int]
) -> None:
    written = f"{before}<{tag}>{thought}</{tag}>{after}{text}"

    found = heard(mended(mender(tools=False), [*said(written, sizes), STOP, DONE]))
    whole = heard(mended(mender(tools=False), [*said(written), STOP, DONE]))

    assert found == whole
    assert found.reason == "stop"
    left = [*found.reasoning, *found.text]
    # Nothing but the tags and blanks beside them is left out.
    gone = len(written) - len(left)
    assert gone <= 2 * len(f"<{tag}></{tag}>") * written.count("<t") + len(
        [c for c in written if c.isspace()]
    ) + 2 * len(f"<{tag}></{tag}>")


@given(
    thought=st.text(alphabet="abc \n<", max_size=30), text=st.text("xyz", min_size=1), sizes=SIZES
)
def test_thought_and_text_come_apart_at_the_end_tag(
    thought: str, text: str, sizes: list[int]
) -> None:
    written = f"<think>{thought}</think>\n\n{text}"

    found = heard(mended(mender(), [*said(written, sizes), STOP]))

    expected = f"{thought}\n\n" if thought.strip() else ""
    assert (found.text, found.reasoning) == (text, expected)


@given(SOLID, SIZES)
def test_thought_without_an_end_is_reasoning_to_the_end(thought: str, sizes: list[int]) -> None:
    thought = thought.replace("<", "")

    found = heard(mended(mender(), [*said(f"<think>x{thought}</thin", sizes), STOP]))

    assert found == Heard("", f"x{thought}</thin", (), "stop")


@given(st.sampled_from(["", "\n", "<think>hm</think>\n"]), SIZES)
def test_call_in_the_text_is_a_call_however_it_is_cut(before: str, sizes: list[int]) -> None:
    one = mender()

    told = mended(one, [*said(f"{before}{CALL}\n", sizes), STOP, DONE])

    thought = "hm\n" if before.startswith("<") else ""
    assert heard(told) == Heard("", thought, (("look", '{"city": "Ulm"}'),), "tool_calls")
    assert [call.id for event in told for call in event.tool_calls] == ["call_x0"]
    assert RESCUED in one.done
    assert sum(event.done for event in told) == 1


def test_call_in_the_text_needs_declared_tools() -> None:
    events = [*said(CALL, [5]), STOP]

    assert mended(mender(tools=False), events) == events
    assert mended(mender(inline_calls=False), events) == events


@pytest.mark.parametrize("last", [[STOP], [DONE]])
def test_call_that_nobody_can_read_is_a_fault_and_the_end(last: list[StreamEvent]) -> None:
    told = mended(mender(), [*said('<tool_call>{"name": "look", "arg', [7]), *last, STOP])

    assert [event.fault.reason for event in told[:1] if event.fault] == ["gate.inline_call"]


def test_call_that_nobody_can_read_is_text_once_something_was_sent() -> None:
    one = mender()
    one.is_committed = True
    events = [*said('<tool_call>{"name": "look", "arg', [7]), STOP]

    assert mended(one, events) == events


def test_stream_that_ends_inside_of_a_call_was_cut() -> None:
    told = mended(mender(), said('<tool_call>{"name": "look", "arg', [3]))

    assert [event.fault.kind for event in told if event.fault] == [FaultKind.NO_TERMINAL]


def test_end_without_a_reason_gets_one_with_a_rescued_call() -> None:
    assert heard(mended(mender(), [*said(CALL), DONE])).reason == "tool_calls"


def test_answer_in_a_single_frame_is_mended_in_it() -> None:
    usage = Usage(total_tokens=3)
    text = f"<think>hm</think>{CALL}"

    told = mended(mender(), [StreamEvent(text=text, finish_reason="stop", usage=usage), DONE])

    assert heard(told) == Heard("", "hm", (("look", '{"city": "Ulm"}'),), "tool_calls")
    assert [event.usage for event in told if event.usage] == [usage]


def test_calls_of_the_upstream_make_text_before_them_text() -> None:
    events = [*said('{"name": "lo', [4]), *called("look", '{"city"', ':"Ulm"}'), CALLS, DONE]

    assert mended(mender(), events) == events


def test_calls_win_over_the_end_the_upstream_tells() -> None:
    found = heard(mended(mender(), [*called("look", "{}"), STOP, DONE]))

    assert (found.calls, found.reason) == ((("look", "{}"),), "tool_calls")
    cut = StreamEvent(finish_reason="length", ended_choices=(0,))
    assert heard(mended(mender(), [*called("look", '{"ci'), cut])).reason == "length"


@given(st.lists(st.sampled_from(["look", "list", "free"]), min_size=1, max_size=4), SIZES)
def test_right_arguments_pass_as_the_very_events_that_came(
    names: list[str], sizes: list[int]
) -> None:
    arguments = '{"items": ["a", "[1]"], "city": "[1]"}'
    pieces = [event.text for event in said(arguments, sizes)]
    events = [
        event for index, name in enumerate(names) for event in called(name, *pieces, index=index)
    ]
    events += [CALLS, StreamEvent(usage=Usage(total_tokens=1), usage_only=True), DONE]

    told = mended(mender(), events)

    assert all(after is before for after, before in zip(told, events, strict=True))


@given(SIZES, st.booleans())
def test_wrong_arguments_come_in_one_piece_and_right(sizes: list[int], same_index: bool) -> None:
    pieces = [event.text for event in said('{"items": "[1, 2]"}', sizes)]
    second = 0 if same_index else 1
    events = [
        *called("list", *pieces, call_id="a"),
        *called("look", '{"city"', ': "[1]"}', index=second, call_id="b"),
        *called("free", '"{\\"a\\"', ': 1}"', index=2 * second, call_id="c"),
        STOP,
    ]

    told = mended(mender(), events)

    assert heard(told).calls == (
        ("list", '{"items":[1,2]}'),
        ("look", '{"city": "[1]"}'),
        ("free", '{"a": 1}'),
    )
    texts = [call.arguments for event in told for call in event.tool_calls if call.arguments]
    assert texts == ['{"items":[1,2]}', '{"city"', ': "[1]"}', '{"a": 1}']


def test_whole_calls_in_one_frame_are_put_right_in_it() -> None:
    deltas = tuple(
        ToolCallDelta(index=place, id=f"c{place}", name="list", arguments=arguments)
        for place, arguments in enumerate(['{"items": "[1]"}', '{"items": [2]}'])
    )
    event = StreamEvent(tool_calls=deltas, finish_reason="stop", ended_choices=(0,))

    told = mended(mender(), [event])

    assert len(told) == 1
    assert heard(told).calls == (("list", '{"items":[1]}'), ("list", '{"items": [2]}'))
    assert told[0].finish_reason == "tool_calls"


def test_plain_arguments_are_not_held() -> None:
    one = mender()
    events = called("look", '{"ci', 'ty": "Ulm"}')

    assert [one.take(event) for event in events] == [[event] for event in events]
    assert one.held == 0


def test_what_is_held_is_a_sign_of_life() -> None:
    one = mender()

    for event in said(CALL, [9, 9]):
        one.take(event)

    assert one.held == 3


def test_other_events_keep_their_place_beside_what_is_held() -> None:
    usage = StreamEvent(usage=Usage(total_tokens=1))
    thinking = StreamEvent(reasoning="hm", is_plain=True)
    events = [*said("<thi"), thinking, usage, *said("ef>"), STOP]

    assert mended(mender(), events) == events


def test_blanks_before_thoughts_do_not_wait_for_a_text() -> None:
    one = mender()
    blank, thinking = StreamEvent(text="\n"), StreamEvent(reasoning="hm", is_plain=True)

    assert [one.take(blank), one.take(thinking)] == [[], [blank, thinking]]


def test_nothing_but_blanks_is_held_for_a_moment_only() -> None:
    one, blank = mender(), StreamEvent(text="\n", is_plain=True)

    told = [one.take(blank) for _ in range(MOST_BLANK_EVENTS)]

    assert told == [[]] * (MOST_BLANK_EVENTS - 1) + [[blank] * MOST_BLANK_EVENTS]


def test_fault_of_the_upstream_ends_all() -> None:
    fault = StreamEvent(fault=Fault(kind=FaultKind.IN_BAND))
    one = mender()

    assert mended(one, [*said(CALL, [5]), fault]) == [fault]
    sent = mender()
    sent.is_committed = True
    assert mended(sent, [*said("<thin"), fault]) == [*said("<thin"), fault]


def test_what_is_switched_off_passes() -> None:
    thought = [*said("<think>a</think>b"), STOP]
    calls = [*called("list", '{"items": "[1]"}'), CALLS]

    assert mended(mender(think_tags=False), thought) == thought
    assert mended(mender(tool_arguments=False), calls) == calls


def test_thoughts_are_told_as_mended() -> None:
    one = mender(tools=False)

    mended(one, [*said("<think>a</think>b"), STOP])

    assert list(one.done) == [THOUGHTS]
    assert one.is_changed
    assert one.is_idle


def test_long_call_takes_linear_time_and_is_whole() -> None:
    text = '<tool_call>{"name": "look", "arguments": {"city": "' + "a" * 65_536 + '"}}'

    found = heard(mended(mender(), [*said(text, [1] * len(text)), STOP]))

    assert found.calls == (("look", '{"city": "' + "a" * 65_536 + '"}'),)


def test_endless_call_is_let_go_as_text() -> None:
    one = mender()
    frame = StreamEvent(text="a" * 1000, raw=b"a" * 60_000, is_plain=True)

    told = [one.take(StreamEvent(text="<tool_call>")), *[one.take(frame) for _ in range(200)]]

    assert sum(map(len, told)) == 201


def test_calls_that_come_by_turns_are_put_right_as_well() -> None:
    first, second = (ToolCallDelta(index=at, id=f"c{at}", name="list") for at in range(2))
    pieces = [
        *(ToolCallDelta(index=0, arguments=text) for text in ('{"items":', ' "[1')),
        second,
        *(ToolCallDelta(index=at, arguments=text) for at, text in [(1, '{"items"'), (0, ', 2]"}')]),
        ToolCallDelta(index=1, arguments=': "[3]"}'),
    ]
    events = [StreamEvent(tool_calls=(one,)) for one in (first, *pieces)]

    told = mended(mender(), [*events, CALLS, DONE])

    assert heard(told).calls == (("list", '{"items":[1,2]}'), ("list", '{"items":[3]}'))


def test_call_that_is_whole_waits_for_no_other() -> None:
    one = mender()
    calls = [*called("list", '{"items":"[1]"}'), *called("list", '{"items":"[2]"}', index=1)]

    told = [after for event in calls for after in one.take(event)]

    assert [call.arguments for event in told for call in event.tool_calls if call.arguments] == [
        '{"items":[1]}'
    ]
