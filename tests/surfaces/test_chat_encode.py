"""Encoding answers: bytes pass through, usage only for those who asked, one error shape."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.events import Completion, StreamEvent, Usage
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.chat_stream import PassedStream

SURFACE = ChatCompletions()
RAW = b'{"id" : "c","choices":[{"delta":{"content":"a"}}]}'


def encoded(
    event: StreamEvent, *, include_usage: bool, extensions: Mapping[str, Any] | None = None
) -> bytes:
    """The client's bytes of one event of the same dialect."""
    return PassedStream(include_usage=include_usage).encode(event, extensions)


def test_an_event_passes_through_byte_for_byte() -> None:
    event = StreamEvent(raw=RAW, text="a")

    assert encoded(event, include_usage=False) == b"data: " + RAW + b"\n\n"


def test_usage_frames_go_only_to_those_who_asked() -> None:
    event = StreamEvent(raw=b'{"choices":[],"usage":{}}', usage=Usage(), usage_only=True)

    assert encoded(event, include_usage=False) == b""
    assert encoded(event, include_usage=True) == b"data: " + event.raw + b"\n\n"


@pytest.mark.parametrize("usage", [b"null", b'{"total_tokens":3}'])
def test_a_usage_member_beside_content_is_taken_out(usage: bytes) -> None:
    event = StreamEvent(raw=b'{"id":"c","usage":' + usage + b',"choices":[{"x": 1}]}')

    assert encoded(event, include_usage=False) == (b'data: {"id":"c","choices":[{"x": 1}]}\n\n')
    assert usage in encoded(event, include_usage=True)


@pytest.mark.parametrize(
    "raw", [b'{"choices":[{"usage":1}]}', b'{"text":"\\"usage\\""}', b'not json "usage"']
)
def test_other_mentions_of_usage_are_left_alone(raw: bytes) -> None:
    sent = encoded(StreamEvent(raw=raw), include_usage=False)

    assert sent == b"data: " + raw + b"\n\n"


def test_the_end_marker_and_faults_are_not_written_as_events() -> None:
    fault = Fault(kind=FaultKind.IN_BAND)

    assert encoded(StreamEvent(raw=b"[DONE]", done=True), include_usage=True) == b""
    assert encoded(StreamEvent(raw=RAW, fault=fault), include_usage=True) == b""
    assert PassedStream(include_usage=True).done() == b"data: [DONE]\n\n"


def test_extensions_are_added_but_never_replace() -> None:
    event = StreamEvent(raw=b'{"id":"c"}')

    sent = encoded(event, include_usage=True, extensions={"id": "x", "strategy": "priority"})

    assert sent == b'data: {"id":"c","strategy":"priority"}\n\n'


def test_a_completion_is_untouched_unless_there_is_something_to_add() -> None:
    completion = Completion(raw=b'{"id" : "c"}')

    assert SURFACE.encode_completion(completion) is completion.raw
    assert SURFACE.encode_completion(completion, {"attempts": []}) == b'{"id":"c","attempts":[]}'


def test_an_answer_that_cannot_be_rewritten_passes_as_it_is() -> None:
    raw = b'{"id":"\xff"}'

    assert SURFACE.encode_completion(Completion(raw=raw), {"attempts": []}) == raw


def test_the_error_object_leaves_out_what_is_empty() -> None:
    error = ErrorBody(status=400, type="invalid_request_error", code="c", message="m")

    assert msgspec.json.decode(SURFACE.encode_error(error, "r1")) == {
        "error": {
            "message": "m",
            "type": "invalid_request_error",
            "code": "c",
            "param": None,
            "request_id": "r1",
            "retryable": False,
        }
    }


def test_the_error_object_holds_everything_known() -> None:
    error = ErrorBody(
        status=429,
        type="rate_limit_error",
        code="rate_limit_exceeded",
        message="m",
        param="model",
        retryable=True,
        retry_after_ms=1500,
        cause="rate_limit",
        combo="auto",
        attempts=({"attempt": 1},),
        skipped=({"route": "g/m"},),
    )

    body = msgspec.json.decode(SURFACE.encode_error(error, "r1"))["error"]

    assert body["retry_after_ms"] == 1500
    assert (body["cause"], body["combo"]) == ("rate_limit", "auto")
    assert (body["attempts"], body["skipped"]) == ([{"attempt": 1}], [{"route": "g/m"}])


def test_a_stream_error_is_one_event_without_an_end_marker() -> None:
    error = ErrorBody(status=200, type="stream_error", code="stream_interrupted", message="a\nb")

    encoded = SURFACE.encode_stream_error(error, "r1")

    assert encoded.startswith(b'data: {"error":')
    assert encoded.endswith(b"\n\n")
    assert encoded.count(b"\n") == 2
    assert b"[DONE]" not in encoded


def test_a_keepalive_is_a_comment() -> None:
    assert SURFACE.encode_keepalive().startswith(b":")


def test_answer_with_half_an_emoji_can_be_extended() -> None:
    completion = Completion(raw=b'{"choices":[{"text":"\\ud83d"}],"n":1}')

    body = SURFACE.encode_completion(completion, {"strategy": "smart"})

    assert body == b'{"choices":[{"text":"\\ud83d"}],"n":1,"strategy":"smart"}'


def test_usage_is_taken_out_of_a_frame_with_half_an_emoji() -> None:
    event = StreamEvent(raw=b'{"choices":[{"x":"\\ude00"}],"usage":{"total_tokens":1}}')

    assert encoded(event, include_usage=False) == (b'data: {"choices":[{"x":"\\ude00"}]}\n\n')
