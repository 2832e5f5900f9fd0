"""Other words in frames and bodies of chat completions, with everything else kept."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Text, Thinking, ToolUse
from cluster_gw.canonical.events import Completion, StreamEvent, ToolCallDelta, Usage
from cluster_gw.providers.base import RewritingProvider
from cluster_gw.providers.openai_chat import OpenAIChatProvider

CODEC = OpenAIChatProvider()


def reframed(frame: dict[str, Any] | bytes, event: StreamEvent) -> dict[str, Any]:
    raw = frame if isinstance(frame, bytes) else msgspec.json.encode(frame)
    found: dict[str, Any] = msgspec.json.decode(CODEC.reframed(raw, event))
    return found


def test_codec_of_openai_rewrites() -> None:
    assert isinstance(CODEC, RewritingProvider)


def test_frame_says_something_else_and_keeps_the_rest() -> None:
    choice = {"index": 0, "delta": {"role": "assistant", "content": "<think>a", "x": 1}, "y": 2}
    frame = {"id": "up", "model": "m", "choices": [choice], "usage": {"total_tokens": 3}}

    found = reframed(frame, StreamEvent(reasoning="a", usage=Usage(total_tokens=3)))
    without = reframed(frame, StreamEvent(text="b"))

    delta = {"role": "assistant", "x": 1, "reasoning_content": "a", "content": ""}
    assert found == {
        **frame,
        "choices": [{"index": 0, "y": 2, "delta": delta, "finish_reason": None}],
    }
    assert "usage" not in without
    assert without["choices"][0]["delta"] == {"role": "assistant", "x": 1, "content": "b"}


def test_reasoning_keeps_the_vendors_name() -> None:
    frame = {"choices": [{"delta": {"reasoning": "", "content": "<think>a"}}]}

    assert reframed(frame, StreamEvent(reasoning="a"))["choices"][0]["delta"] == {"reasoning": "a"}


def test_calls_are_put_into_the_fragments_that_stood_there() -> None:
    call = {"index": 1, "id": "c", "extra": 1, "function": {"name": "f", "arguments": '"{}"'}}
    frame = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "stop"}]}
    deltas = (
        ToolCallDelta(index=1, id="c", name="f", arguments="{}"),
        ToolCallDelta(index=1, arguments="x"),
    )

    found = reframed(frame, StreamEvent(tool_calls=deltas, finish_reason="tool_calls"))

    assert found["choices"][0] == {
        "index": 0,
        "finish_reason": "tool_calls",
        "delta": {
            "tool_calls": [
                {
                    "index": 1,
                    "id": "c",
                    "type": "function",
                    "extra": 1,
                    "function": {"name": "f", "arguments": "{}"},
                },
                {"index": 1, "function": {"arguments": "x"}},
            ]
        },
    }


@pytest.mark.parametrize("frame", [b"", b"[1]", b'{"choices": 3}', b'{"choices": [{"delta": 4}]}'])
def test_frame_that_cannot_be_read_still_says_it(frame: bytes) -> None:
    choice = reframed(frame, StreamEvent(text="a"))["choices"][0]

    assert choice["delta"] == {"content": "a"}


def test_body_says_something_else_where_an_answer_does() -> None:
    sound = {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "logprobs": {"a": 1}}
    call = {"id": "c", "extra": 1, "function": {"name": "f", "arguments": '"{}"'}}
    odd = {"index": 1, "message": {"content": "<think>", "x": 1, "tool_calls": [call]}, "y": 2}
    document = {"id": "up", "choices": [sound, odd], "usage": {"total_tokens": 3}}
    completion = Completion(raw=msgspec.json.encode(document))
    same, before = Choice(parts=(Text(text="Hi"),)), Choice(parts=(Text(text="<think>"),))
    after = Choice(
        parts=(Thinking(text="a"), ToolUse(id="c", name="f"), ToolUse(id="d", name="g")),
        finish_reason="tool_calls",
    )

    found = CODEC.rebodied(
        completion, Answer(choices=(same, before)), Answer(choices=(same, after))
    )

    told = msgspec.json.decode(found.raw)
    assert told["choices"][0] == sound
    assert {name: told[name] for name in ("id", "usage")} == {
        "id": "up",
        "usage": document["usage"],
    }
    assert told["choices"][1] == {
        "index": 1,
        "y": 2,
        "finish_reason": "tool_calls",
        "message": {
            "role": "assistant",
            "x": 1,
            "content": None,
            "reasoning_content": "a",
            "tool_calls": [
                {**call, "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "d", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ],
        },
    }


@pytest.mark.parametrize(
    ("body", "written"),
    [
        (
            b'{"error":{"code":"tool_use_failed","failed_generation":"<function=f>"}}',
            "<function=f>",
        ),
        (b'{"error":{"failed_generation":3}}', ""),
        (b'{"error":"failed_generation"}', ""),
        (b'"failed_generation"', ""),
        (b"failed_generation", ""),
    ],
)
def test_what_could_not_be_read_as_a_call_is_found_in_its_error(body: bytes, written: str) -> None:
    assert CODEC.failed_generation(body) == written
