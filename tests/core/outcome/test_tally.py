from cluster_gw.canonical.events import StreamEvent, ToolCallDelta, Usage
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.outcome.tally import Tally

CUT = Fault(kind=FaultKind.CUT)


def tally_of(*events: StreamEvent, choices: int = 1) -> Tally:
    tally = Tally(choices)
    for event in events:
        tally.add(event)
    return tally


def test_text_reasoning_and_tool_arguments_all_count_as_output() -> None:
    call = ToolCallDelta(name="ab", arguments="cde")

    tally = tally_of(StreamEvent(text="xy"), StreamEvent(reasoning="z", tool_calls=(call,)))

    assert tally.characters == 8


def test_the_last_usage_wins() -> None:
    tally = tally_of(
        StreamEvent(usage=Usage(total_tokens=1)), StreamEvent(usage=Usage(total_tokens=9))
    )

    assert tally.usage == Usage(total_tokens=9)


def test_a_stream_with_an_end_marker_is_whole() -> None:
    assert tally_of(StreamEvent(done=True)).verdict_at_end(None) is None


def test_a_stream_is_whole_when_every_choice_ended_even_if_the_connection_broke() -> None:
    ended = StreamEvent(finish_reason="stop", ended_choices=(0,))

    other = StreamEvent(finish_reason="stop", ended_choices=(1,))
    assert tally_of(ended, other, choices=2).verdict_at_end(CUT) is None
    assert tally_of(ended, ended, choices=2).verdict_at_end(CUT) is CUT, "one choice ended twice"
    assert tally_of(ended, choices=2).verdict_at_end(CUT) is CUT


def test_a_clean_end_without_a_marker_or_finish_reason_is_a_broken_answer() -> None:
    fault = tally_of(StreamEvent(text="half")).verdict_at_end(None)

    assert fault is not None
    assert fault.kind is FaultKind.NO_TERMINAL


def test_an_error_inside_the_stream_beats_everything_else() -> None:
    fault = Fault(kind=FaultKind.IN_BAND)

    assert tally_of(StreamEvent(fault=fault), StreamEvent(done=True)).verdict_at_end(None) is fault
