"""Half an emoji, wherever an upstream puts it, is an answer or a fault: nothing raises."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from cluster_gw.canonical.failure import Fault
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.providers.base import Provider
from cluster_gw.providers.gemini import GeminiProvider
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.providers.openai_responses import OpenAIResponsesProvider
from cluster_gw.surfaces import SURFACES
from cluster_gw.surfaces.base import StreamHead, Surface
from cluster_gw.surfaces.gemini import GenerateContent
from tests.fakes import responses_frames
from tests.fakes.anthropic_upstream import message, streamed
from tests.fakes.anthropic_upstream import text as said
from tests.fakes.gemini_upstream import frame

HEAD: Final = StreamHead(id="0" * 32, model="m", created_s=1, is_native=False, include_usage=True)
MARK: Final = "put the half here"
DEEP: Final = b"[" * 900 + b'"\\ud83d"' + b"]" * 900
HALVES: Final = (
    b'"\\ud83d"',
    b'"\\udc00x"',
    b'{"\\ud83d":1}',
    b'["\\ud83d"]',
    b'{"a":"\\ud83d"}',
    DEEP,
)
CALL: Final = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
DELTA: Final = {"content": "a", "reasoning_content": "b", "refusal": "c", "tool_calls": [CALL]}
USAGE: Final = {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {}}
CHUNK: Final = {
    "id": "c",
    "object": "chat.completion.chunk",
    "choices": [{"index": 0, "delta": DELTA, "finish_reason": "stop"}],
    "usage": USAGE,
}
CHAT_ANSWER: Final = {
    "choices": [{"index": 0, "message": DELTA, "finish_reason": "stop"}],
    "usage": USAGE,
}
MESSAGE: Final = message(
    {"type": "thinking", "thinking": "hm", "signature": "s"},
    {"type": "redacted_thinking", "data": "x"},
    said("hello"),
    {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
    stop_reason="tool_use",
)
RESPONSE: Final = responses_frames.response(
    responses_frames.thought("one", "two", encrypted="gA"),
    responses_frames.message(responses_frames.text("a story")),
    responses_frames.call("c1", "f", '{"a":1}'),
    responses_frames.message(responses_frames.refusal("no")),
)
CANDIDATE: Final = frame(
    [
        {"text": "th", "thought": True, "thoughtSignature": "zz"},
        {"text": "Hi"},
        {"functionCall": {"name": "f", "id": "c", "args": {"a": 1}}, "thoughtSignature": "q"},
        {"inlineData": {"mimeType": "image/png", "data": "AA"}},
    ],
    end="STOP",
    usage={"promptTokenCount": 4, "candidatesTokenCount": 2, "totalTokenCount": 6},
)
ERROR: Final = {"type": "error", "error": {"message": "m", "type": "t", "code": "c", "status": "s"}}


def data_of(stream: bytes) -> list[tuple[bytes, Any]]:
    """The frames of a stream: what stands before each document, and the document."""
    found = re.findall(rb"((?:event: [^\n]*\n)?data: )([^\n]*)\n\n", stream)
    return [(before, msgspec.json.decode(data)) for before, data in found]


def wrapped(document: Any) -> list[tuple[bytes, Any]]:
    return [(b"data: ", document), (b"data: ", ERROR)]


Case = tuple[Provider, list[tuple[bytes, Any]], Any]
CASES: Final[dict[str, Case]] = {
    "openai": (OpenAIChatProvider(), wrapped(CHUNK), CHAT_ANSWER),
    "anthropic": (AnthropicProvider(), [*data_of(streamed(MESSAGE)), *wrapped({})[1:]], MESSAGE),
    "responses": (
        OpenAIResponsesProvider(),
        [*data_of(b"".join(responses_frames.frames(RESPONSE))), *wrapped({})[1:]],
        RESPONSE,
    ),
    "gemini": (GeminiProvider(), wrapped(CANDIDATE), CANDIDATE),
}


def marked(document: Any) -> Iterator[Any]:
    """The document with the mark in the place of each value, and beside the members of objects."""
    yield MARK
    if isinstance(document, dict):
        yield {**document, MARK: 1}
        for name, value in document.items():
            yield from ({**document, name: one} for one in marked(value))
    elif isinstance(document, list):
        for place, value in enumerate(document):
            for one in marked(value):
                yield [*document[:place], one, *document[place + 1 :]]


def bent(document: Any) -> Iterator[bytes]:
    """The document with half an emoji in each place."""
    for one in marked(document):
        written = msgspec.json.encode(one)
        mark = f'"{MARK}"'.encode()
        halves = HALVES[:1] if mark + b":" in written else HALVES
        yield from (written.replace(mark, half) for half in halves)


def surfaces() -> list[Surface]:
    chats = [one for path, one in SURFACES.items() if path != "/v1/embeddings"]
    return [*chats, GenerateContent("m", stream=True)]


@pytest.mark.parametrize("name", CASES)
def test_half_an_emoji_in_a_frame_raises_nowhere(name: str) -> None:
    codec, frames, _ = CASES[name]
    whole = [before + msgspec.json.encode(document) + b"\n\n" for before, document in frames]
    count = 0
    for place, (before, document) in enumerate(frames):
        for half in bent(document):
            stream = b"".join([*whole[:place], before + half + b"\n\n", *whole[place + 1 :]])
            decoder = codec.stream_decoder()
            events = [*decoder.decode(stream), *decoder.flush()]
            for surface in surfaces():
                encoder = surface.stream_encoder(HEAD)
                written = b"".join([encoder.encode(event) for event in events]) + encoder.done()
                assert written.decode()
            count += 1

    assert count > 100


@pytest.mark.parametrize("name", CASES)
def test_half_an_emoji_in_an_answer_raises_nowhere(name: str) -> None:
    codec, _, answer = CASES[name]
    sound = 0
    for half in bent(answer):
        completion = codec.decode_completion(half, "application/json")
        if isinstance(completion, Fault):
            continue
        sound += 1
        for surface in surfaces():
            assert surface.encode_answer(codec.read_answer(completion), HEAD).decode()

    assert sound > 50


@pytest.mark.parametrize("name", CASES)
def test_half_an_emoji_in_an_error_raises_nowhere(name: str) -> None:
    codec = CASES[name][0]
    for half in bent(ERROR):
        fault = codec.decode_error(500, {}, half, 0)
        assert fault.status == 500
