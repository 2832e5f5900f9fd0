"""Whole answers told as streams: however their bytes come, the events are the same."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.canonical.failure import FaultKind
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.providers.openai_whole import MAX_BYTES, WholeAnswerDecoder

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ANSWER = {
    "id": "x",
    "model": "m",
    "choices": [
        {"message": {"role": "assistant", "content": "häé", "tool_calls": [CALL]}},
        {"index": 1, "message": {"content": "b"}, "finish_reason": "length"},
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
}
BODY = msgspec.json.encode(ANSWER)


def decoded(*chunks: bytes) -> list[StreamEvent]:
    decoder = WholeAnswerDecoder("secret")
    events = [event for chunk in chunks for event in decoder.decode(chunk)]
    return [*events, *decoder.flush()]


def test_an_answer_becomes_its_frames() -> None:
    said, counted, end = decoded(BODY)

    assert said.text == "häéb"
    assert said.ended_choices == (0, 1)
    assert [(call.index, call.id, call.name) for call in said.tool_calls] == [(0, "c1", "f")]
    assert counted.usage_only
    assert counted.usage is not None
    assert counted.usage.total_tokens == 3
    assert end.done


@given(st.lists(st.integers(0, len(BODY)), max_size=6))
def test_any_split_gives_the_same_events(places: list[int]) -> None:
    cuts = [0, *sorted(places), len(BODY)]

    assert decoded(*[BODY[a:b] for a, b in pairwise(cuts)]) == decoded(BODY)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"error":{"message":"the secret"}}', FaultKind.IN_BAND),
        (b'{"choices":1}', FaultKind.MALFORMED),
        (b"[]", FaultKind.MALFORMED),
        (b"<html>", FaultKind.CONTENT_TYPE),
    ],
)
def test_what_is_no_answer_is_one_fault(body: bytes, kind: FaultKind) -> None:
    (event,) = decoded(body)

    assert event.fault is not None
    assert event.fault.kind is kind
    assert "secret" not in event.fault.message


def test_nothing_is_no_event_and_too_much_is_a_fault() -> None:
    assert decoded() == []
    (event,) = decoded(*[b" " * (MAX_BYTES // 4)] * 6)
    assert event.fault is not None
    assert event.fault.kind is FaultKind.TOO_LARGE


def test_json_is_a_stream_only_where_there_is_none() -> None:
    assert OpenAIChatProvider(["no_stream"]).is_stream("application/json")
    assert not OpenAIChatProvider(["no_stream"]).is_stream("text/html")
    assert not OpenAIChatProvider().is_stream("application/json")
