from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.core.outcome.tool_calls import join_calls

END = StreamEvent(finish_reason="tool_calls")
WHOLE = st.lists(st.text(max_size=12), min_size=1, max_size=4)


def said(*deltas: ToolCallDelta) -> StreamEvent:
    return StreamEvent(tool_calls=deltas)


@given(texts=WHOLE, size=st.integers(1, 5))
def test_calls_are_whole_however_they_were_cut(texts: list[str], size: int) -> None:
    events = []
    for index, text in enumerate(texts):
        events.append(said(ToolCallDelta(index=index, id=f"c{index}", name=f"f{index}")))
        events += [
            said(ToolCallDelta(index=index, arguments=text[at : at + size]))
            for at in range(0, len(text), size)
        ]

    calls = join_calls([*events, END])

    assert [(call.id, call.name, call.arguments) for call in calls] == [
        (f"c{index}", f"f{index}", text) for index, text in enumerate(texts)
    ]
    assert join_calls(events) == calls[:-1]


def test_parallel_calls_with_the_same_number_are_told_apart_by_their_ids() -> None:
    events = [said(ToolCallDelta(id="a", name="f"), ToolCallDelta(id="b", name="g")), END]

    assert [call.name for call in join_calls(events)] == ["f", "g"]


def test_stream_without_calls_has_none() -> None:
    assert join_calls([StreamEvent(text="hello"), END]) == []
