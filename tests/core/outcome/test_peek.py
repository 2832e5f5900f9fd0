"""The peek commits to content, rejects silence, and holds what it cannot judge yet."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta, Usage
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.outcome.peek import (
    PEEK_CODES,
    Commit,
    Hold,
    Peek,
    PeekPolicy,
    PeekResult,
    Reject,
)

ROLE = StreamEvent(raw=b"role")
TEXT = StreamEvent(raw=b"text", text="hi")
BLANK = StreamEvent(raw=b"blank", text=" \n")
THINK = StreamEvent(raw=b"think", reasoning="hm")
STOP = StreamEvent(raw=b"stop", finish_reason="stop", ended_choices=(0,))
DONE = StreamEvent(raw=b"[DONE]", done=True)
USAGE = StreamEvent(raw=b"usage", usage=Usage(total_tokens=1), usage_only=True)


def call(index: int, call_id: str | None = None) -> StreamEvent:
    return StreamEvent(raw=b"call", tool_calls=(ToolCallDelta(index=index, id=call_id),))


def peek(policy: PeekPolicy | None = None, *, is_last: bool = False, **facts: Any) -> Peek:
    return Peek(policy or PeekPolicy(), is_last=is_last, started_ms=0, **facts)


def feed(machine: Peek, *events: StreamEvent) -> PeekResult:
    result: PeekResult = Hold()
    for event in events:
        result = machine.feed(event, 0)
        if not isinstance(result, Hold):
            break
    return result


def code(result: PeekResult) -> str:
    return result.code if isinstance(result, Reject) else type(result).__name__


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([ROLE, TEXT], "Commit"),
        ([BLANK, BLANK, TEXT], "Commit"),
        ([StreamEvent(text="hi", finish_reason="stop", ended_choices=(0,))], "Commit"),
        ([THINK] * 50, "Hold"),
        ([call(0, "a")] * 50, "Hold"),
        ([ROLE, StreamEvent(finish_reason="content_filter", ended_choices=(0,))], "Commit"),
        ([StreamEvent(finish_reason="content_filter"), DONE], "Commit"),
        ([StreamEvent(is_structure=True)] * 50, "Hold"),
        ([StreamEvent(signature="s")] * 50, "Hold"),
        ([call(0, "a"), call(0), STOP], "Commit"),
        ([call(0, "a"), call(0), DONE], "Commit"),
        ([call(0, "a"), call(0), call(1, "b")], "Commit"),
        ([call(0, "a"), call(0, "b")], "Commit"),
        ([call(0), call(0, "a"), call(0, "a")], "Hold"),
        ([STOP], "peek.empty"),
        ([ROLE, DONE], "peek.empty"),
        ([THINK, STOP], "peek.empty"),
        ([ROLE] * 8, "peek.blank"),
        ([BLANK] * 7, "Hold"),
        ([USAGE] * 8, "peek.blank"),
        ([StreamEvent(reasoning=" ")] * 8, "peek.blank"),
        ([ROLE, THINK] * 7, "Hold"),
    ],
)
def test_events_lead_to_their_result(events: list[StreamEvent], expected: str) -> None:
    assert code(feed(peek(), *events)) == expected


def test_an_error_event_keeps_its_own_fault() -> None:
    fault = Fault(kind=FaultKind.IN_BAND, status=429, retry_after_ms=5)

    result = feed(peek(), THINK, StreamEvent(fault=fault, text="ignored"))

    assert result == Reject(code="peek.upstream_error", fault=fault)


def test_an_empty_end_commits_when_the_gate_lets_it_pass() -> None:
    assert code(feed(peek(accept_empty=True), ROLE, STOP)) == "Commit"


def test_a_stream_of_several_choices_ends_with_the_last() -> None:
    machine = peek(choices=2)

    last = StreamEvent(raw=b"stop", finish_reason="stop", ended_choices=(1,))

    assert code(machine.feed(STOP, 0)) == "Hold"
    assert code(machine.feed(STOP, 0)) == "Hold", "the same choice again"
    assert code(machine.feed(last, 0)) == "peek.empty"


def test_bytes_are_bounded_while_another_candidate_exists() -> None:
    policy = PeekPolicy(max_bytes=12)

    assert code(feed(peek(policy), *[THINK] * 3)) == "peek.too_large"


def test_the_last_candidate_is_relayed_rather_than_thrown_away() -> None:
    policy = PeekPolicy(max_bytes=12)

    assert code(feed(peek(policy, is_last=True), *[THINK] * 3)) == "Commit"


def test_any_event_and_any_sign_of_life_restarts_the_idle_clock() -> None:
    machine = peek(PeekPolicy(idle_ms=100))

    machine.feed(THINK, 60)
    assert machine.next_deadline_ms() == 160
    machine.touch(150)
    assert machine.next_deadline_ms() == 250
    assert code(machine.expire(249)) == "Hold"
    assert code(machine.expire(250)) == "peek.idle"


def test_the_last_candidate_may_be_silent_for_longer() -> None:
    machine = peek(PeekPolicy(idle_ms=100, last_idle_ms=900, max_total_ms=300), is_last=True)

    assert machine.next_deadline_ms() == 900
    assert code(machine.expire(500)) == "Hold"


def test_the_total_is_capped_while_another_candidate_exists() -> None:
    machine = peek(PeekPolicy(idle_ms=100, max_total_ms=150))
    machine.feed(THINK, 90)

    assert machine.next_deadline_ms() == 150
    assert code(machine.expire(150)) == "peek.total"


def test_a_stream_that_closes_early_is_rejected() -> None:
    machine = peek()
    machine.feed(THINK, 5)

    assert machine.close(9).fault.reason == "peek.closed"


EVENTS = st.lists(
    st.sampled_from([ROLE, TEXT, BLANK, THINK, STOP, DONE, USAGE, call(0), call(1), call(0, "b")]),
    max_size=30,
)


@settings(deadline=None, max_examples=300)
@given(EVENTS, st.booleans(), st.booleans())
def test_held_events_are_all_events_in_order_and_the_first_verdict_ends(
    events: list[StreamEvent], is_last: bool, accept_empty: bool
) -> None:
    machine = peek(is_last=is_last, accept_empty=accept_empty)
    fed = []
    result: PeekResult = Hold()
    for event in events:
        fed.append(event)
        result = machine.feed(event, 0)
        if not isinstance(result, Hold):
            break

    assert machine.held == fed
    has_content = any(e.text.strip() or e.tool_calls for e in fed)
    if isinstance(result, Commit) and not accept_empty:
        assert has_content
    if isinstance(result, Reject):
        assert result.code in PEEK_CODES
        assert not any(e.text.strip() for e in fed)
