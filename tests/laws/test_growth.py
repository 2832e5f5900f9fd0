"""The work for a request or a stream grows with its size, not with the square of it.

A worker has one loop: what is quadratic holds up everybody. With as many parts as a request may
have, a quadratic step takes several seconds, a linear one a small part of the bound.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
import pytest

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.providers.base import Provider
from cluster_gw.providers.gemini import GeminiProvider
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.providers.openai_responses import OpenAIResponsesProvider
from cluster_gw.surfaces import SURFACES
from cluster_gw.surfaces.base import StreamHead, Surface
from cluster_gw.surfaces.gemini import GenerateContent

BOUND_S: Final = 1.0  # of processor time; the linear steps take less than a fifth
MANY: Final = 15_000
HALF: Final = MANY // 2
PER_TURN: Final = 1_500
GEMINI: Final = GenerateContent("models/m", stream=True)
CHAT, MESSAGES, RESPONSES = (
    SURFACES[path] for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses")
)
CODECS: Final[tuple[Provider, ...]] = (
    OpenAIChatProvider(),
    OpenAIResponsesProvider(),
    AnthropicProvider(),
    GeminiProvider(),
)
HEAD: Final = StreamHead(id="0" * 32, model="m", created_s=1, is_native=False)


def taken_s(work: Callable[[], object]) -> float:
    begin_s = time.thread_time()
    work()
    return time.thread_time() - begin_s


def contents(calls: list[Any], results: list[Any]) -> dict[str, Any]:
    turns = [{"role": "model", "parts": parts} for parts in batched(calls)]
    return {"contents": [*turns, *({"parts": parts} for parts in batched(results))]}


def batched(parts: list[Any]) -> list[list[Any]]:
    """As many as one turn may hold, and a few less."""
    return [parts[start : start + PER_TURN] for start in range(0, len(parts), PER_TURN)]


def gemini_pairs(call: dict[str, str], result: dict[str, str]) -> dict[str, Any]:
    return contents([{"functionCall": call}] * MANY, [{"functionResponse": result}] * MANY)


def gemini_ids() -> dict[str, Any]:
    ids = [f"id{number}" for number in range(HALF)]
    calls = [{"functionCall": {"name": "f", "id": one}} for one in ids]
    results = [{"functionResponse": {"name": "f", "id": one}} for one in reversed(ids)]
    return contents(calls, results)


def messages(*given: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 1, "messages": list(given)}


CHAT_CALL: Final = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT_RESULT: Final = {"role": "tool", "tool_call_id": "x", "content": "a"}
USE: Final = {"type": "tool_use", "id": "x", "name": "f", "input": {}}
RESULT: Final = {"type": "tool_result", "tool_use_id": "x", "content": "a"}
CALL_ITEM: Final = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT_ITEM: Final = {"type": "function_call_output", "call_id": "c", "output": "a"}
BODIES: Final[dict[str, tuple[Surface, dict[str, Any]]]] = {
    "gemini: results of nobody": (GEMINI, gemini_pairs({"name": "f"}, {"name": "g"})),
    "gemini: results by name": (GEMINI, gemini_pairs({"name": "f"}, {"name": "f"})),
    "gemini: results by id": (GEMINI, gemini_ids()),
    "chat: results": (CHAT, messages(*[CHAT_RESULT] * MANY)),
    "chat: calls": (CHAT, messages({"role": "assistant", "tool_calls": [CHAT_CALL] * MANY})),
    "messages: calls and results": (
        MESSAGES,
        messages(
            *({"role": "assistant", "content": some} for some in batched([USE] * HALF)),
            *({"role": "user", "content": some} for some in batched([RESULT] * HALF)),
        ),
    ),
    "messages: turns": (MESSAGES, messages(*[{"role": "user", "content": [RESULT]}] * HALF)),
    "responses: calls": (RESPONSES, {"model": "m", "input": [CALL_ITEM] * MANY}),
    "responses: results": (RESPONSES, {"model": "m", "input": [OUTPUT_ITEM] * MANY}),
    "responses: both": (RESPONSES, {"model": "m", "input": [CALL_ITEM, OUTPUT_ITEM] * HALF}),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_request_of_many_calls_and_results_is_translated_in_linear_time(name: str) -> None:
    surface, body = BODIES[name]
    request = surface.decode_request(msgspec.json.encode(body))
    assert isinstance(request, ChatRequest), request

    read_s = taken_s(lambda: surface.read_conversation(request))
    conversation = surface.read_conversation(request)

    assert read_s < BOUND_S
    for codec in CODECS:
        encode = partial(codec.encode_conversation, conversation, "m")
        assert taken_s(encode) < BOUND_S, codec


def called(index: int, arguments: str, name: str | None = "f") -> StreamEvent:
    call_id = None if name is None else f"c{index}"
    call = ToolCallDelta(index=index, id=call_id, name=name, arguments=arguments)
    return StreamEvent(tool_calls=(call,))


STREAMS: Final[dict[str, list[StreamEvent]]] = {
    "calls that never end": [called(number, "{") for number in range(MANY)],
    "many calls in turn": [
        called(number % HALF, "{" if number < HALF else "}", "f" if number < HALF else None)
        for number in range(MANY)
    ],
    "one call with others behind it": [
        called(0, '{"a":['),
        called(1, "{"),
        *[called(0, "{},", None)] * MANY,
    ],
    "fragments that wait": [
        called(0, "{"),
        called(1, "{"),
        *[called(1, '"a",', None)] * MANY,
    ],
    "texts and calls": [
        called(0, "{"),
        *[StreamEvent(text="a"), StreamEvent(reasoning="b"), called(1, "1", None)] * HALF,
    ],
    "words and refusals": [StreamEvent(text="a"), StreamEvent(text="b", is_refusal=True)] * HALF,
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("surface", [CHAT, MESSAGES, RESPONSES, GEMINI])
def test_a_stream_of_many_pieces_is_written_in_linear_time(surface: Surface, name: str) -> None:
    encoder = surface.stream_encoder(HEAD)

    def write() -> None:
        for event in STREAMS[name]:
            encoder.encode(event)
        encoder.done()

    assert taken_s(write) < BOUND_S
