"""Legacy completions: a prompt becomes a chat, and what a chat says becomes text."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Refusal, Text, Thinking
from cluster_gw.canonical.events import Completion, StreamEvent, Usage
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.errors import ErrorBody
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.completions import Completions

SURFACE = Completions()
HEAD = StreamHead(id="0" * 32, model="m", created_s=1, include_usage=True, is_native=False)
USAGE = Usage(prompt_tokens=3, completion_tokens=4, total_tokens=7)


def decode(**members: Any) -> ChatRequest:
    request = SURFACE.decode_request(msgspec.json.encode({"prompt": "go on", **members}))
    assert isinstance(request, ChatRequest), request
    return request


def sent(**members: Any) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(
        OpenAIChatProvider().encode_request(decode(**members), "up")
    )
    return document


def documents(stream: bytes) -> list[dict[str, Any]]:
    lines = [line[6:] for line in stream.split(b"\n") if line.startswith(b"data: {")]
    return [msgspec.json.decode(line) for line in lines]


def test_prompt_is_a_chat_of_one_message() -> None:
    assert decode().dialect is Dialect.OPENAI
    assert sent(temperature=0.5, stop="x", echo=False, best_of=2, n=2) == {
        "model": "up",
        "temperature": 0.5,
        "stop": "x",
        "n": 2,
        "messages": [{"role": "user", "content": "go on"}],
        "max_tokens": 128,
    }


def test_bound_of_the_client_stands() -> None:
    assert sent(max_tokens=9)["max_tokens"] == 9
    assert decode(max_tokens=9).max_tokens == 9


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"prompt": 5}, "prompt"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": [[1], [2]]}, "prompt"),
        ({"n": 0}, "n"),
        ({"n": 2, "best_of": 3}, "best_of"),
        ({"n": 2, "best_of": 1}, "best_of"),
        ({"echo": True}, "echo"),
        ({"logprobs": 0}, "logprobs"),
        ({"stream": "yes"}, "stream"),
        ({"suffix": "end"}, "suffix"),
    ],
)
def test_what_cannot_be_served_is_named(members: dict[str, Any], param: str) -> None:
    error = SURFACE.decode_request(msgspec.json.encode({"prompt": "x", **members}))

    assert isinstance(error, ErrorBody)
    assert (error.status, error.code, error.param) == (400, "invalid_request", param)


def test_missing_prompt_and_broken_json_are_refused() -> None:
    missing, broken = SURFACE.decode_request(b"{}"), SURFACE.decode_request(b"{")

    assert isinstance(missing, ErrorBody)
    assert isinstance(broken, ErrorBody)
    assert (missing.param, broken.code) == ("prompt", "invalid_json")


@given(st.lists(st.builds(StreamEvent, text=st.text(min_size=1, max_size=4)), max_size=6))
def test_stream_has_all_text_one_end_and_usage(events: list[StreamEvent]) -> None:
    stream = SURFACE.stream_encoder(HEAD)
    last = StreamEvent(finish_reason="stop", usage=USAGE)

    written = b"".join([*map(stream.encode, [*events, last]), stream.done()])

    frames = documents(written)
    texts = [choice["text"] for frame in frames for choice in frame["choices"]]
    assert "".join(texts) == "".join(event.text for event in events)
    assert {frame["object"] for frame in frames} == {"text_completion"}
    assert frames[-1]["usage"]["total_tokens"] == 7
    assert written.endswith(b"data: [DONE]\n\n")


def test_reasoning_and_faults_have_no_frame() -> None:
    stream = SURFACE.stream_encoder(HEAD)

    assert stream.encode(StreamEvent(reasoning="hm")) == b""
    assert stream.encode(StreamEvent(done=True)) == b""
    broken = ErrorBody(status=502, type="t", code="c", message="m")
    assert documents(stream.error(broken, "r"))[0]["error"]["code"] == "c"


def test_answers_become_text_whoever_gave_them() -> None:
    raw = {
        "id": "c1",
        "created": 5,
        "model": "up",
        "choices": [{"index": 0, "message": {"content": "so"}, "finish_reason": "length"}],
        "usage": {"total_tokens": 7},
        "system_fingerprint": "fp",
    }
    native = SURFACE.encode_completion(
        Completion(raw=msgspec.json.encode(raw)), {"strategy": "priority"}
    )
    foreign = SURFACE.encode_answer(
        Answer(
            choices=(Choice(parts=(Thinking(text="hm"), Text(text="so"), Refusal(text="!"))),),
            usage=USAGE,
        ),
        HEAD,
    )

    one, other = msgspec.json.decode(native), msgspec.json.decode(foreign)
    assert one == {
        "object": "text_completion",
        "id": "cmpl-c1",
        "created": 5,
        "model": "up",
        "choices": [{"index": 0, "text": "so", "logprobs": None, "finish_reason": "length"}],
        "usage": {"total_tokens": 7},
        "strategy": "priority",
    }
    assert other["choices"][0]["text"] == "so!"
    assert other["usage"]["total_tokens"] == 7


@pytest.mark.parametrize(
    ("given", "shown"), [("chatcmpl-7", "cmpl-7"), ("cmpl-7", "cmpl-7"), ("7", "cmpl-7"), (7, 7)]
)
def test_answer_has_an_id_as_clients_of_this_api_know_it(given: object, shown: object) -> None:
    raw = msgspec.json.encode({"id": given, "choices": []})

    assert msgspec.json.decode(SURFACE.encode_completion(Completion(raw=raw)))["id"] == shown


def test_answer_that_bends_the_format_still_has_its_text() -> None:
    body = {"choices": [{"message": {"content": "so", "tool_calls": "none"}}]}

    written = SURFACE.encode_completion(Completion(raw=msgspec.json.encode(body), text="so"))

    assert msgspec.json.decode(written)["choices"][0]["text"] == "so"
