"""The stream decoder: one event per frame, vendors' bends included, any split of the bytes."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta, Usage
from cluster_gw.canonical.failure import FaultKind
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.wire.sse import MAX_FRAME_BYTES


def sse(*documents: Any) -> bytes:
    return b"".join([b"data: " + msgspec.json.encode(d) + b"\n\n" for d in documents])


def choice(finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish_reason}


def chunk(*choices: Any, **members: Any) -> dict[str, Any]:
    return {"id": "c1", "object": "chat.completion.chunk", "choices": list(choices), **members}


def events_of(stream: bytes, secret: str | None = None) -> list[StreamEvent]:
    decoder = OpenAIChatProvider().stream_decoder(secret)
    return decoder.decode(stream) + decoder.flush()


def only(document: Any) -> StreamEvent:
    (event,) = events_of(sse(document))
    return event


def test_text_frames_keep_their_own_bytes() -> None:
    document = chunk(choice(content="hel"))

    event = only(document)

    assert event == StreamEvent(raw=msgspec.json.encode(document), text="hel", is_plain=True)


def test_a_whole_answer_becomes_its_events_and_one_end() -> None:
    stream = sse(
        chunk(choice(role="assistant", content="")),
        chunk(choice(content="hi")),
        chunk(choice("stop")),
        chunk(usage={"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}),
    )

    events = events_of(stream + b"data: [DONE]\n\ndata: [DONE]\n\n" + sse(chunk(choice())))

    assert [event.text for event in events] == ["", "hi", "", "", ""]
    assert [event.finish_reason for event in events] == [None, None, "stop", None, None]
    assert [event.ended_choices for event in events] == [(), (), (0,), (), ()]
    assert [event.usage_only for event in events] == [False, False, False, True, False]
    assert events[3].usage == Usage(prompt_tokens=3, completion_tokens=1, total_tokens=4)
    assert [event.done for event in events] == [False, False, False, False, True]


@pytest.mark.parametrize(
    ("delta", "text", "reasoning"),
    [
        ({"reasoning_content": "think"}, "", "think"),
        ({"reasoning": "think"}, "", "think"),
        ({"reasoning": "think", "reasoning_content": "think"}, "", "think"),
        ({"refusal": "no"}, "no", ""),
        ({"content": "a", "refusal": "no"}, "ano", ""),
        ({"audio": {"transcript": "said"}}, "said", ""),
        ({"content": None}, "", ""),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", ""),
        ({"content": ["a", "b"]}, "ab", ""),
        (
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}]},
            "",
            "t",
        ),
        ({"content": 5}, "", ""),
        ({"content": 5, "reasoning": {"text": "t"}}, "", "t"),
    ],
)
def test_text_and_reasoning_are_found(delta: dict[str, Any], text: str, reasoning: str) -> None:
    event = only(chunk(choice(**delta)))

    assert (event.text, event.reasoning) == (text, reasoning)
    assert event.fault is None


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (
            [{"index": 1, "id": "a", "type": "function", "function": {"name": "f"}}],
            ToolCallDelta(index=1, id="a", name="f"),
        ),
        (
            [{"index": 0, "function": {"arguments": '{"x"'}}],
            ToolCallDelta(index=0, arguments='{"x"'),
        ),
        ([{"id": "", "function": None}], ToolCallDelta()),
        ([{"index": "2", "function": {"arguments": "y"}}], ToolCallDelta(index=2, arguments="y")),
        (
            [{"index": 0, "function": {"name": "f", "arguments": {"x": 1}}}],
            ToolCallDelta(name="f", arguments='{"x":1}'),
        ),
        ({"index": 3, "id": 7}, ToolCallDelta(index=3, id="7")),
    ],
)
def test_tool_call_fragments_are_found(calls: Any, expected: ToolCallDelta) -> None:
    assert only(chunk(choice(tool_calls=calls))).tool_calls == (expected,)


def test_calls_without_index_are_told_apart_by_place() -> None:
    event = only(chunk(choice(tool_calls=[{"id": "a"}, {"id": "b"}])))

    assert [call.index for call in event.tool_calls] == [0, 1]


def test_the_legacy_function_call_is_a_tool_call() -> None:
    event = only(chunk(choice(function_call={"name": "f", "arguments": "{"})))

    assert event.tool_calls == (ToolCallDelta(name="f", arguments="{"),)


@pytest.mark.parametrize("choices", [[{"delta": "text"}], [{"delta": 5, "index": "x"}], ["x"]])
def test_a_choice_without_a_delta_says_nothing(choices: Any) -> None:
    event = only({"choices": choices})

    assert (event.text, event.tool_calls, event.fault) == ("", (), None)


def test_several_choices_are_counted_and_joined() -> None:
    second = {**choice("length", content="b"), "index": 1}
    event = only(chunk(choice("stop", content="a"), second, {**choice(), "index": 2}))

    assert (event.text, event.finish_reason, event.ended_choices) == ("ab", "stop", (0, 1))


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {"prompt_tokens": 2, "completion_tokens": 3},
            Usage(prompt_tokens=2, completion_tokens=3, total_tokens=5),
        ),
        (
            {"prompt_tokens": "2", "completion_tokens": 3.0, "total_tokens": 9},
            Usage(prompt_tokens=2, completion_tokens=3, total_tokens=9),
        ),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None),
        ({"prompt_tokens": None}, None),
        (
            {"prompt_tokens": -4, "completion_tokens": 1},
            Usage(prompt_tokens=0, completion_tokens=1, total_tokens=1),
        ),
        ({"prompt_tokens": "many", "completion_tokens": [1]}, None),
        ({"prompt_tokens": 1e300, "completion_tokens": True}, None),
        ("none", None),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 5,
                "total_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 2, "audio_tokens": 0},
            },
            Usage(
                prompt_tokens=5,
                completion_tokens=5,
                total_tokens=10,
                cached_prompt_tokens=4,
                reasoning_tokens=2,
            ),
        ),
    ],
)
def test_usage_is_read_and_zeros_count_as_missing(usage: Any, expected: Usage | None) -> None:
    event = only(chunk(usage=usage))

    assert event.usage == expected
    assert event.usage_only is isinstance(usage, dict)


def test_usage_beside_content_does_not_make_a_usage_frame() -> None:
    event = only(chunk(choice("stop"), usage={"total_tokens": 4}))

    assert event.usage == Usage(total_tokens=4)
    assert not event.usage_only


@pytest.mark.parametrize(
    ("frame", "status", "code", "message"),
    [
        (b'data: {"error":{"message":"slow down","code":429}}\n\n', 429, "429", "slow down"),
        (b'data: {"error":"plain","choices":[]}\n\n', None, None, "plain"),
        (b'data: {"object":"error","message":"m","code":503}\n\n', 503, "503", "m"),
        (b'event: error\ndata: {"message":"boom","type":"x"}\n\n', None, None, "boom"),
        (b"event: error\ndata: out of memory\n\n", None, None, "out of memory"),
        (b'data: {"choices":[{"delta":{},"finish_reason":"error"}]}\n\n', None, None, "error"),
        (b'data: {"choices":5,"error":{"code":"overloaded","message":"m"}}\n\n', None, "over", "m"),
        (b'data: {"error":{"x":1}}\n\n', None, None, ""),
    ],
)
def test_errors_inside_the_stream_keep_their_facts(
    frame: bytes, status: int | None, code: str | None, message: str
) -> None:
    first, *rest = events_of(frame + sse(chunk(choice(content="late"))))

    assert rest == []
    assert first.fault is not None
    assert first.fault.kind is FaultKind.IN_BAND
    assert first.fault.status == status
    assert (first.fault.code or "").startswith(code or "")
    assert message in first.fault.message


def test_a_stated_wait_inside_the_stream_survives() -> None:
    (event,) = events_of(sse({"error": {"message": "Please try again in 2s", "code": 429}}))

    assert event.fault is not None
    assert event.fault.retry_after_ms == 2000


@pytest.mark.parametrize("error", [None, False, "", {}])
def test_an_empty_error_member_is_no_error(error: Any) -> None:
    event = only(chunk(choice(content="a"), error=error))

    assert event.fault is None
    assert event.text == "a"


def test_an_echoed_secret_is_struck_out() -> None:
    (event,) = events_of(
        sse({"error": {"message": "bad key hunter22", "code": "hunter22"}}), "hunter22"
    )

    assert event.fault is not None
    assert "hunter22" not in repr(event.fault)


@pytest.mark.parametrize(
    "frame", [b"data: {oops\n\n", b"data: [1]\n\n", b"data: 5\n\n", b"data: null\n\n"]
)
def test_a_frame_that_is_no_object_is_a_fault_and_the_end(frame: bytes) -> None:
    first, *rest = events_of(frame + b"data: [DONE]\n\n")

    assert rest == []
    assert first.fault is not None
    assert first.fault.kind is FaultKind.MALFORMED


def test_half_a_frame_at_the_end_is_a_cut_and_gives_nothing() -> None:
    assert events_of(b'data: {"choices":[{"del') == []


def test_a_last_frame_without_its_blank_line_counts() -> None:
    assert events_of(b"data: [DONE]")[0].done
    assert events_of(sse(chunk(choice(content="a")))[:-2])[0].text == "a"


def test_events_without_blank_lines_between_them_are_still_events() -> None:
    lines = sse(chunk(choice(content="a")), chunk(choice(content="b"))).replace(b"\n\n", b"\n")

    events = events_of(lines + b"data: [DONE]\n")

    assert [event.text for event in events] == ["a", "b", ""]
    assert events[-1].done


def test_a_document_over_several_data_lines_becomes_one_line() -> None:
    (event,) = events_of(b'data: {"choices":\ndata: [{"delta":{"content":"a"}}]}\n\n')

    assert event.text == "a"
    assert b"\n" not in event.raw


def test_pings_comments_and_empty_data_are_signs_of_life_only() -> None:
    decoder = OpenAIChatProvider().stream_decoder()

    assert decoder.decode(b": x\n\nevent: ping\ndata: {}\n\ndata:\n\n") == []
    assert decoder.signs_of_life == 3


def test_an_endless_frame_is_a_fault() -> None:
    decoder = OpenAIChatProvider().stream_decoder()
    decoder.decode(b"data: ")

    events = [e for _ in range(6) for e in decoder.decode(b"x" * (MAX_FRAME_BYTES // 4))]

    assert [e.fault.kind for e in events if e.fault] == [FaultKind.TOO_LARGE]
    assert decoder.flush() == []


def test_frames_without_choices_or_usage_are_passed_on() -> None:
    event = only({"choices": [], "prompt_filter_results": []})

    assert event.fault is None
    assert not event.usage_only


@pytest.mark.parametrize("half", ["\\ud83d", "\\ude00"])
def test_half_an_emoji_is_text_and_its_frame_stays_as_it_is(half: str) -> None:
    data = f'{{"choices":[{{"index":3,"delta":{{"content":"a{half}"}},"finish_reason":"stop"}}]}}'

    (event,) = events_of(f"data: {data}\n\n".encode())

    assert event.raw == data.encode()
    assert event.fault is None
    assert (event.text[0], len(event.text)) == ("a", 2)
    assert event.ended_choices == (3,)


def test_half_an_emoji_is_counted_wherever_it_is_said() -> None:
    said = '"refusal":"\\ud83d","audio":{"transcript":"\\ud83d"},"reasoning":"\\ud83d"'
    call = '"tool_calls":[{"index":1,"function":{"name":"f","arguments":"\\ud83d"}}]'
    data = f'{{"choices":[{{"delta":{{{said},{call}}}}}]}}'

    (event,) = events_of(f"data: {data}\n\n".encode())

    assert (len(event.text), len(event.reasoning)) == (2, 1)
    assert event.tool_calls == (ToolCallDelta(index=1, name="f", arguments="\ud83d"),)


def test_error_with_half_an_emoji_is_an_error() -> None:
    (event,) = events_of(b'data: {"error":{"message":"no \\ud83d","code":"x\\ud83d"}}\n\n')

    assert event.fault is not None
    assert event.fault.kind is FaultKind.IN_BAND
    assert event.fault.message.encode()
    assert (event.fault.code or "").encode()
