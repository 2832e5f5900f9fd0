"""Streams of Anthropic's dialect as single frames, sound and bent."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.canonical.failure import FaultKind
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.wire.sse import MAX_FRAME_BYTES

SECRET = "sk-ant-very-secret"


def decoded(*documents: Any, end: bool = True) -> list[StreamEvent]:
    decoder = AnthropicProvider().stream_decoder(SECRET)
    stream = b"".join([b"data: " + raw(document) + b"\n\n" for document in documents])
    return decoder.decode(stream) + (decoder.flush() if end else [])


def raw(document: Any) -> bytes:
    return document if isinstance(document, bytes) else msgspec.json.encode(document)


def delta(**members: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": members}


def test_frame_of_several_lines_is_one() -> None:
    decoder = AnthropicProvider().stream_decoder()

    [event] = decoder.decode(b'data: {"type":\ndata: "message_stop"}\n\n')

    assert event.done
    assert event.name == b"message_stop"
    assert b"\n" not in event.raw


def test_name_of_a_frame_stands_in_for_a_missing_type() -> None:
    decoder = AnthropicProvider().stream_decoder()

    assert decoder.decode(b"event: message_stop\ndata: {}\n\n")[0].done


def test_end_marker_of_another_dialect_is_passed_over() -> None:
    decoder = AnthropicProvider().stream_decoder()

    assert decoder.decode(b"data: [DONE]\n\nevent: ping\ndata: {}\n\n") == []
    assert decoder.signs_of_life == 2


def test_frame_that_grows_without_bound_is_a_fault_and_the_end() -> None:
    decoder = AnthropicProvider().stream_decoder()

    [event] = decoder.decode(b"data: " + b"x" * (MAX_FRAME_BYTES + 1))

    assert event.fault is not None
    assert event.fault.kind is FaultKind.TOO_LARGE
    assert decoder.decode(b"data: {}\n\n") == []


def test_half_a_frame_at_the_end_is_a_cut_and_no_nonsense() -> None:
    decoder = AnthropicProvider().stream_decoder()

    assert decoder.decode(b'data: {"type":"mess') == []
    assert decoder.flush() == []


@pytest.mark.parametrize("document", [b"{bad", b"[1]", b'{"type":"message_delta","delta":5}'])
def test_frame_that_is_none_is_a_fault(document: bytes) -> None:
    [event] = decoded(document, {"type": "message_stop"}, end=False)

    assert event.fault is not None
    assert event.fault.kind is FaultKind.MALFORMED


def test_error_is_told_with_the_status_of_its_type_and_without_the_secret() -> None:
    error = {"type": "rate_limit_error", "message": f"no {SECRET}"}

    for members in ({}, {"index": "bent", "delta": 5}):
        [event] = decoded({"type": "error", "error": error, **members})
        assert event.fault is not None
        assert event.fault.kind is FaultKind.IN_BAND
        assert event.fault.status == 429
        assert SECRET not in event.fault.message


def test_error_that_names_a_status_keeps_it() -> None:
    [event] = decoded({"type": "error", "error": {"type": "api_error", "code": 503}})

    assert event.fault is not None
    assert event.fault.status == 503


def test_numbers_as_text_and_half_an_emoji_are_read() -> None:
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}

    bent, half = decoded(
        {**end, "usage": {"input_tokens": "4", "output_tokens": 2.0}},
        b'{"type":"content_block_delta","delta":{"type":"text_delta","text":"a\\ud83d"}}',
    )

    assert bent.usage is not None
    assert bent.usage.total_tokens == 6
    assert half.text.startswith("a")


def test_words_that_come_with_the_beginning_of_a_block_are_words() -> None:
    def start(**block: Any) -> dict[str, Any]:
        return {"type": "content_block_start", "index": 0, "content_block": block}

    events = decoded(start(type="text", text="hi"), start(type="thinking", thinking="hm"))

    assert [(event.text, event.reasoning) for event in events] == [("hi", ""), ("", "hm")]


def test_input_that_comes_with_the_beginning_of_a_call_is_told_at_its_end() -> None:
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
    stop = {"type": "content_block_stop", "index": 0}

    events = decoded({"type": "content_block_start", "index": 0, "content_block": call}, stop, stop)

    fragments = [fragment for event in events for fragment in event.tool_calls]
    assert [(one.index, one.id, one.arguments) for one in fragments] == [
        (0, "t", ""),
        (0, None, '{"a":1}'),
    ]


def test_blank_words_are_blank_and_all_else_belongs_to_the_answer() -> None:
    blank, cited, unknown = decoded(
        delta(type="text_delta", text=""),
        delta(type="citations_delta", citation={}),
        {"type": "something_new"},
    )

    assert not blank.is_structure
    assert cited.is_structure
    assert unknown.is_structure


def test_counts_of_the_beginning_stay_where_the_end_tells_none() -> None:
    usage = {"input_tokens": 9, "cache_read_input_tokens": 2, "output_tokens": 1}
    start, end = decoded(
        {"type": "message_start", "message": {"usage": usage}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "max_tokens"},
            "usage": {"output_tokens": 5},
        },
    )

    assert start.usage is None  # the end tells it; what is cut before is estimated
    assert end.usage is not None
    assert (end.usage.prompt_tokens, end.usage.completion_tokens) == (11, 5)
    assert end.usage.cached_prompt_tokens == 2
    assert end.finish_reason == "length"
