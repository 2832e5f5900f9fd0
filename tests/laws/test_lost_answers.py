"""What vendors show beside words is named to clients of other APIs, buffered and streamed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
import pytest

from cluster_gw.canonical.events import Completion, StreamEvent
from cluster_gw.canonical.request import Dialect
from cluster_gw.core.outcome.peek import Commit, Peek, PeekPolicy
from cluster_gw.providers import provider_for
from cluster_gw.providers.base import Provider
from cluster_gw.surfaces.base import StreamHead, Surface
from tests.fakes import responses_frames as responses
from tests.fakes.anthropic_frames import frames
from tests.fakes.anthropic_upstream import message
from tests.fuzz.codecs import Facts, surfaces

CODECS: Final[Mapping[Dialect, Provider]] = MappingProxyType(
    {one: provider_for(Facts(one)) for one in Dialect}
)
NATIVE: Final = MappingProxyType(
    {
        Dialect.OPENAI_RESPONSES: "responses",
        Dialect.ANTHROPIC: "messages",
        Dialect.GEMINI: "gemini",
    }
)
WRITERS: Final[Mapping[str, Surface]] = MappingProxyType(
    {name: surfaces()[name] for name in ("chat-completions", "completions", *NATIVE.values())}
)
HEAD: Final = StreamHead(id="0" * 32, model="m", created_s=1, is_native=False)
ITEMS: Final = (
    *("web_search_call", "file_search_call", "code_interpreter_call", "computer_call"),
    *("mcp_call", "mcp_list_tools", "custom_tool_call", "local_shell_call", "nobody_knows_it"),
)
BLOCKS: Final = (
    *("server_tool_use", "web_search_tool_result", "code_execution_tool_result", "mcp_tool_use"),
    *("mcp_tool_result", "container_upload", "nobody_knows_it"),
)
PARTS: Final = ("executableCode", "codeExecutionResult", "nobodyKnowsIt")


def of_responses(item: dict[str, Any], *, words: bool) -> tuple[bytes, bytes]:
    """An answer that holds an item, buffered and as a stream."""
    said = [responses.message(responses.text("so"))] if words else []
    answer = responses.response(item, *said)
    return msgspec.json.encode(answer), b"".join(responses.frames(answer))


def of_claude(block: dict[str, Any], *, words: bool) -> tuple[bytes, bytes]:
    said = [{"type": "text", "text": "so"}] if words else []
    answer = message(block, *said)
    blocks = [
        event
        for index, one in enumerate(answer["content"])
        for event in (
            {"type": "content_block_start", "index": index, "content_block": one},
            {"type": "content_block_stop", "index": index},
        )
    ]
    opening = {"type": "message_start", "message": {**answer, "content": []}}
    ending = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
    stream = frames([opening, *blocks, ending, {"type": "message_stop"}])
    return msgspec.json.encode(answer), stream


def of_gemini(part: dict[str, Any], *, words: bool, **more: Any) -> tuple[bytes, bytes]:
    said = [{"text": "so"}] if words else []
    candidate = {"content": {"parts": [part, *said]}, "finishReason": "STOP", **more}
    body = msgspec.json.encode({"candidates": [candidate]})
    return body, b"data: " + body + b"\n\n"


def told(kind: str, *, words: bool = True) -> tuple[Dialect, bytes, bytes]:
    """The dialect and both forms of an answer with something of a kind in it."""
    if kind in ITEMS:
        return Dialect.OPENAI_RESPONSES, *of_responses({"type": kind, "id": "x"}, words=words)
    if kind == "annotations":
        part = {**responses.text("so"), "annotations": [{"type": "url_citation", "url": "h"}]}
        return Dialect.OPENAI_RESPONSES, *of_responses(responses.message(part), words=words)
    if kind in BLOCKS:
        return Dialect.ANTHROPIC, *of_claude({"type": kind, "id": "x"}, words=words)
    if kind == "citations":
        block = {"type": "text", "text": "so", "citations": [{"cited_text": "x"}]}
        return Dialect.ANTHROPIC, *of_claude(block, words=words)
    if kind in PARTS:
        return Dialect.GEMINI, *of_gemini({kind: {"it": "x"}}, words=words)
    return Dialect.GEMINI, *of_gemini({"text": "so"}, words=words, **{kind: {"it": "x"}})


KINDS: Final = (*ITEMS, *BLOCKS, *PARTS, "annotations", "citations")
BESIDE: Final = ("groundingMetadata", "citationMetadata")


def events_of(dialect: Dialect, stream: bytes) -> list[StreamEvent]:
    decoder = CODECS[dialect].stream_decoder()
    return [*decoder.decode(stream), *decoder.flush()]


def completion_of(dialect: Dialect, body: bytes) -> Completion:
    found = CODECS[dialect].decode_completion(body, "application/json")
    assert isinstance(found, Completion)
    return found


@pytest.mark.parametrize("kind", [*KINDS, *BESIDE])
def test_streams_name_what_buffered_answers_name(kind: str) -> None:
    dialect, body, stream = told(kind)
    names = CODECS[dialect].read_answer(completion_of(dialect, body)).lost
    assert names

    for writer, surface in WRITERS.items():
        if writer == NATIVE[dialect]:
            continue
        encoder = surface.stream_encoder(HEAD)
        sent = b"".join([encoder.encode(event) for event in events_of(dialect, stream)])
        sent += encoder.done()

        comments = [line for line in sent.split(b"\n") if line.startswith(b": ")]
        assert comments == [f": dropped answer: {name}".encode() for name in names]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_tool_of_the_vendor_did_is_no_call_and_no_empty_answer(kind: str) -> None:
    dialect, body, stream = told(kind, words=False)
    events = events_of(dialect, stream)
    peek = Peek(PeekPolicy(), is_last=False, started_ms=0)

    completion = completion_of(dialect, body)

    assert not completion.tool_calls
    assert not any(event.tool_calls for event in events)
    assert completion.has_media or completion.text
    assert any(isinstance(peek.feed(event, 1), Commit) for event in events)


def test_each_name_is_told_once_a_stream_and_so_many_are() -> None:
    items = [{"type": f"kind_{n % 40}\n", "id": str(n)} for n in range(80)]
    stream = b"".join(responses.frames(responses.response(*items)))
    encoder = WRITERS["chat-completions"].stream_encoder(HEAD)

    sent = b"".join([encoder.encode(e) for e in events_of(Dialect.OPENAI_RESPONSES, stream)])

    assert sent.count(b": dropped answer: kind_") == 32
    assert all(line.startswith((b":", b"data: ")) for line in sent.split(b"\n") if line)


def test_annotations_of_a_buffered_chat_are_named() -> None:
    message = {"role": "assistant", "content": "so", "annotations": [{"type": "url_citation"}]}
    plain = {**message, "annotations": []}
    codec = CODECS[Dialect.OPENAI]

    names = [
        codec.read_answer(
            completion_of(
                Dialect.OPENAI,
                msgspec.json.encode({"choices": [{"message": one, "finish_reason": "stop"}]}),
            )
        ).lost
        for one in (message, plain)
    ]

    assert names == [("annotations",), ()]
