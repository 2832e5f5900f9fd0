"""Several answers in one stream: each is mended as it would be alone."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.events import StreamEvent, Usage
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.mending.choices import ChoicesMender
from cluster_gw.mending.policy import MendingPolicy
from cluster_gw.mending.stream import RESCUED, THOUGHTS, Mender
from tests.mending.telling import (
    CALLS,
    DONE,
    STOP,
    TOOLS,
    Heard,
    called,
    heard,
    mended,
    mender,
    said,
)

CALL = '<tool_call>{"name": "look", "arguments": {"city": "Ulm"}}</tool_call>'
TOLD = {
    "plain": [*said("Hi you.", [2]), STOP],
    "thought": [*said("<thinking>hm</thinking>\nHi.", [1] * 14), STOP],
    "call": [*said(CALL, [9]), STOP],
    "arguments": [*called("list", '{"items":', '"[1]"}'), CALLS],
    "begun": [*said("<think>hm")],
}


def several(count: int = 2, *, tools: bool = True) -> ChoicesMender:
    def one(index: int) -> Mender:
        declared = (lambda: TOOLS) if tools else None
        return Mender(MendingPolicy(), tools=declared, call_id="call_x", index=index)

    return ChoicesMender(one, count)


def spoken_by(index: int, event: StreamEvent) -> StreamEvent:
    """The event of an answer, as it stands in a stream of several."""
    if not index:
        return event
    ended = (index,) if event.ended_choices else ()
    piece = msgspec.structs.replace(event, is_plain=False, ended_choices=())
    return msgspec.structs.replace(piece, ended_choices=ended, pieces=((index, piece),))


def heard_of(index: int, told: list[StreamEvent]) -> Heard:
    """What one answer says in the end."""
    pieces = [piece for one in told for place, piece in shares(one) if place == index]
    return heard([msgspec.structs.replace(one, done=False) for one in pieces])


def shares(event: StreamEvent) -> tuple[tuple[int, StreamEvent], ...]:
    return event.pieces or ((0, event),)


@given(names=st.lists(st.sampled_from(sorted(TOLD)), min_size=2, max_size=3), order=st.randoms())
def test_each_answer_is_mended_as_it_would_be_alone(names: list[str], order: Random) -> None:
    alone = [heard(mended(mender(), TOLD[name])) for name in names]
    queues = [[spoken_by(index, one) for one in TOLD[name]] for index, name in enumerate(names)]
    events: list[StreamEvent] = []
    while any(queues):
        events.append(order.choice([one for one in queues if one]).pop(0))

    told = mended(several(len(names)), [*events, DONE])

    assert [heard_of(index, told) for index in range(len(names))] == alone
    assert told[-1].done
    assert sum(one.done for one in told) == 1


@given(st.lists(st.sampled_from(["plain", "free"]), min_size=1, max_size=3))
def test_events_that_need_nothing_are_the_very_ones_that_came(names: list[str]) -> None:
    calls = [*called("look", '{"city":', '"Ulm"}'), CALLS]
    events = [
        spoken_by(index, one)
        for index, name in enumerate(names)
        for one in (TOLD["plain"] if name == "plain" else calls)
    ] + [StreamEvent(usage=Usage(total_tokens=3), usage_only=True), DONE]

    told = mended(several(len(names)), events)

    assert len(told) == len(events)
    assert all(after is before for after, before in zip(told, events, strict=True))


def test_frame_of_two_answers_is_taken_apart_where_one_of_them_waits() -> None:
    first, second = StreamEvent(text="Hi"), StreamEvent(text="<thi")
    rest = StreamEvent(text="nk>hm</think>You", finish_reason="stop")
    both = StreamEvent(text="Hi<thi", usage=Usage(total_tokens=1), pieces=((0, first), (1, second)))
    last = msgspec.structs.replace(rest, ended_choices=(1,), pieces=((1, rest),))
    one = several()

    told = mended(one, [both, last, STOP, DONE])

    assert heard_of(0, told) == Heard("Hi", "", (), "stop")
    assert heard_of(1, told) == Heard("You", "hm", (), "stop")
    assert [event.usage for event in told if event.usage] == [both.usage]
    assert (list(one.done), one.is_changed, one.held) == ([THOUGHTS], True, 1)


def test_what_waits_of_one_answer_does_not_look_like_blank_events() -> None:
    events = [spoken_by(1, one) for one in TOLD["thought"]]

    told = mended(several(tools=False), [*events, STOP, DONE])

    assert all(one.text or one.reasoning or one.finish_reason or one.done for one in told)


def test_call_that_nobody_can_read_is_a_fault_of_all_and_the_end() -> None:
    broken = [spoken_by(1, one) for one in [*said('<tool_call>{"name": "lo', [7]), STOP]]

    told = mended(several(), [*said("<think>hm"), *broken, DONE])

    assert [one.fault.reason for one in told if one.fault] == ["gate.inline_call"]


def test_later_answer_of_a_stream_that_was_sent_is_held_to_no_end() -> None:
    one = several()
    one.is_committed = True
    cut = Fault(kind=FaultKind.CUT, message="cut")

    told = [after for event in spoken_by_second(CALL[:20]) for after in one.take(event)]
    told += one.take(StreamEvent(fault=cut))

    assert heard_of(1, told[:-1]).text == CALL[:20]
    assert told[-1].fault is cut
    assert one.is_idle
    assert one.end() == one.surrender() == []


def spoken_by_second(text: str) -> list[StreamEvent]:
    return [spoken_by(1, one) for one in said(text, [5])]


def test_what_waits_of_all_answers_together_has_a_bound() -> None:
    one, frame = several(128), b"x" * 1_000_000
    begun = [spoken_by(at, event) for at in range(20) for event in said(CALL[:20], [])]
    told = [
        after for event in begun for after in one.take(msgspec.structs.replace(event, raw=frame))
    ]

    assert 0 < one.held < len(begun) == len(told)
    assert one.is_idle
    assert "".join(event.text for event in told) == CALL[:20] * len(told)


@pytest.mark.parametrize("tools", [True, False])
def test_nothing_more_is_looked_at_once_all_answers_are_text(tools: bool) -> None:
    one = several(tools=tools)

    for event in (StreamEvent(text="a", is_plain=True), *spoken_by_second("b")):
        assert not one.is_idle
        assert one.take(event) == [event]

    assert one.is_idle is not tools
    assert RESCUED not in one.done
