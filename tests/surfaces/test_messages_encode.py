"""Answers, streams and errors of the messages API, written anew."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Media, Text, Thinking, ToolUse
from cluster_gw.canonical.events import Completion, StreamEvent, ToolCallDelta
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces import messages_blocks
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.messages import Messages
from tests.fakes.anthropic_frames import events_of

SURFACE = Messages()
HEAD = StreamHead(id="0" * 32, model="m", created_s=1, is_native=False, input_tokens=5)


def answer(*parts: Any, **end: Any) -> dict[str, Any]:
    written = Answer(choices=(Choice(parts=parts, **end),))
    document: dict[str, Any] = msgspec.json.decode(SURFACE.encode_answer(written, HEAD))
    return document


def stream(*events: StreamEvent) -> list[dict[str, Any]]:
    encoder = SURFACE.stream_encoder(HEAD)
    return events_of(b"".join([encoder.encode(event) for event in events]) + encoder.done())


def piece(index: int, arguments: str, **more: Any) -> StreamEvent:
    return StreamEvent(tool_calls=(ToolCallDelta(index=index, arguments=arguments, **more),))


def blocks(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Kind of each block, and all that its deltas add."""
    found: list[list[str]] = []
    for event in events:
        if event["type"] == "content_block_start":
            found.append([event["content_block"]["type"], ""])
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            found[-1][1] += next(value for name, value in delta.items() if name != "type")
    return [(kind, text) for kind, text in found]


def test_signatures_of_other_vendors_are_marked() -> None:
    document = answer(
        Thinking(text="hm", signature="abc"),
        Thinking(text="x"),
        Thinking(signature="d", is_redacted=True),
        Text(text=""),
        ToolUse(id="a.b", name="f", arguments="{}", signature="proof"),
        Media(media_type="image/png", data="x"),
    )

    assert document["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "gw:abc"},
        {"type": "thinking", "thinking": "x", "signature": "gw:"},
        {"type": "redacted_thinking", "data": "gw:d"},
        {"type": "thinking", "thinking": "", "signature": "gw-call:proof"},
        {"type": "tool_use", "id": "a_b", "name": "f", "input": {}},
    ]


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        ("", {}),
        ("[1]", {"malformed_arguments": "[1]"}),
        ('{"a":', {"malformed_arguments": '{"a":'}),
    ],
)
def test_arguments_that_are_no_object_are_shown(arguments: str, seen: dict[str, Any]) -> None:
    document = answer(ToolUse(id="a", name="f", arguments=arguments), finish_reason="stop")

    assert document["content"][0]["input"] == seen
    assert document["stop_reason"] == "tool_use"


def test_stop_text_is_told_where_it_is_known() -> None:
    document = answer(Text(text="x"), finish_reason="stop", stop_sequence="END")

    assert document["stop_reason"] == "stop_sequence"
    assert document["stop_sequence"] == "END"
    assert document["usage"]["input_tokens"] == 5


def test_signed_call_in_a_stream_has_its_proof_before_it() -> None:
    events = stream(piece(0, "{}", id="a", name="f", signature="proof"))

    assert blocks(events) == [("thinking", "gw-call:proof"), ("tool_use", "{}")]
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_signature_of_a_frame_with_a_call_is_the_calls() -> None:
    call = ToolCallDelta(index=0, id="a", name="f", arguments="{}")

    events = stream(StreamEvent(signature="s", tool_calls=(call,)))

    assert blocks(events) == [("thinking", "gw-call:s"), ("tool_use", "{}")]


def test_call_without_an_id_gets_one() -> None:
    events = stream(piece(0, "", name="f"), piece(0, "{}"))

    assert events[1]["content_block"]["id"] == f"toolu_{HEAD.id}_0"


def test_what_follows_whole_arguments_belongs_to_nothing() -> None:
    events = stream(piece(0, "{}", id="a", name="f"), StreamEvent(text="so"), piece(0, "rest"))

    assert blocks(events) == [("tool_use", "{}"), ("text", "so")]


def test_words_wait_for_a_call_that_is_not_whole() -> None:
    events = stream(
        piece(0, '{"a":', id="a", name="f"),
        StreamEvent(text="so "),
        StreamEvent(text="on"),
        piece(1, "{}", id="b", name="g"),
        piece(0, "1}"),
        piece(1, " "),
    )

    assert blocks(events) == [("tool_use", '{"a":1}'), ("text", "so on"), ("tool_use", "{} ")]


def test_waiting_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_blocks, "MAX_KEPT", 10)

    events = stream(
        piece(0, '{"a":', id="a", name="f"),
        StreamEvent(text="x" * 8),
        StreamEvent(text="y" * 8),
        piece(0, "1}"),
        StreamEvent(text="z"),
    )

    assert blocks(events) == [("tool_use", '{"a":'), ("text", "x" * 8 + "y" * 8 + "z")]


def test_long_arguments_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_blocks, "MAX_KEPT", 10)

    events = stream(
        piece(0, '{"a":"', id="a", name="f"), piece(0, "x" * 20), StreamEvent(text="so")
    )

    assert blocks(events) == [("tool_use", '{"a":"' + "x" * 20), ("text", "so")]


def test_answer_without_a_word_is_a_sound_stream() -> None:
    events = stream(StreamEvent(finish_reason="content_filter", ended_choices=(0,)))

    assert [event["type"] for event in events] == ["message_start", "message_delta", "message_stop"]
    assert events[1]["delta"]["stop_reason"] == "refusal"


def test_members_of_our_own_are_added_to_the_end() -> None:
    end = StreamEvent(finish_reason="stop", ended_choices=(0,))
    native = StreamEvent(raw=b'{"type":"message_delta"}', name=b"message_delta")
    encoder = SURFACE.stream_encoder(HEAD)
    passed = SURFACE.stream_encoder(msgspec.structs.replace(HEAD, is_native=True))

    written = encoder.encode(end, {"strategy": "x"}) + encoder.done()
    extended = passed.encode(native, {"strategy": "x"})
    body = SURFACE.encode_completion(Completion(raw=b'{"a":1}'), {"strategy": "x"})

    assert events_of(written)[-2]["strategy"] == "x"
    assert events_of(extended)[0]["strategy"] == "x"
    assert msgspec.json.decode(body) == {"a": 1, "strategy": "x"}


@pytest.mark.parametrize(
    ("status", "kind", "sent"),
    [
        (200, "api_error", 200),
        (400, "invalid_request_error", 400),
        (401, "authentication_error", 401),
        (402, "billing_error", 402),
        (403, "permission_error", 403),
        (404, "not_found_error", 404),
        (413, "request_too_large", 413),
        (422, "invalid_request_error", 422),
        (429, "rate_limit_error", 429),
        (500, "api_error", 500),
        (502, "api_error", 502),
        (503, "overloaded_error", 529),
        (504, "timeout_error", 504),
    ],
)
def test_error_has_the_vendors_type_and_status(status: int, kind: str, sent: int) -> None:
    error = ErrorBody(status=status, type="ours", code="c", message="m", retry_after_ms=5)

    document = msgspec.json.decode(SURFACE.encode_error(error, "id"))
    [event] = events_of(SURFACE.encode_stream_error(error, "id"))

    assert document == event
    assert document["type"] == "error"
    assert document["request_id"] == "id"
    assert document["error"]["type"] == kind
    assert document["error"]["code"] == "c"
    assert document["error"]["retry_after_ms"] == 5
    assert SURFACE.status_of(error) == sent


def test_quiet_stream_gets_the_vendors_own_ping() -> None:
    assert events_of(SURFACE.encode_keepalive()) == [{"type": "ping"}]
