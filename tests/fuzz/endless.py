"""Streams that never end, made piece by piece in each dialect, and what is held while they pass."""

import itertools
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.canonical.request import Dialect

PIECE_BYTES: Final = 4096

Chunks = Callable[[], Iterator[bytes]]


def piece(number: int) -> str:
    """Text that no other piece shares."""
    return f"{number:09}" + "x" * (PIECE_BYTES - 9)


def frames(make: Callable[[int], Mapping[str, Any]]) -> Iterator[bytes]:
    """Events without an end, each made of its number."""
    for number in itertools.count():
        yield b"data: " + msgspec.json.encode(make(number)) + b"\n\n"


def chat(number: int, **delta: Any) -> Mapping[str, Any]:
    return {"id": f"c{number}", "choices": [{"index": 0, "delta": delta}]}


def chat_call(number: int, arguments: str, index: int) -> Mapping[str, Any]:
    function = {"name": "f", "arguments": arguments}
    return chat(number, tool_calls=[{"index": index, "id": f"call{index}", "function": function}])


def block(number: int, kind: str, **members: Any) -> Mapping[str, Any]:
    return {"type": kind, "index": number, **members}


def anthropic_call(number: int) -> Mapping[str, Any]:
    begun = {"type": "tool_use", "id": f"t{number}", "name": "f", "input": {"a": piece(number)}}
    return block(number, "content_block_start", content_block=begun)


def responses_call(number: int) -> Mapping[str, Any]:
    item = {
        "type": "function_call",
        "call_id": f"c{number}",
        "name": "f",
        "arguments": piece(number),
    }
    return {"type": "response.output_item.added", "output_index": number, "item": item}


def gemini(index: int, part: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"candidates": [{"index": index, "content": {"parts": [part]}}]}


ENDLESS: Final[Mapping[Dialect, Mapping[str, Chunks]]] = {
    Dialect.OPENAI: {
        "text": lambda: frames(lambda n: chat(n, content=piece(n))),
        "thoughts": lambda: frames(lambda n: chat(n, reasoning_content=piece(n))),
        "one call": lambda: frames(lambda n: chat_call(n, piece(n), 0)),
        "many calls": lambda: frames(lambda n: chat_call(n, piece(n), n)),
    },
    Dialect.OPENAI_RESPONSES: {
        "text": lambda: frames(lambda n: {"type": "response.output_text.delta", "delta": piece(n)}),
        "many calls": lambda: frames(responses_call),
    },
    Dialect.ANTHROPIC: {
        "text": lambda: frames(
            lambda n: block(
                0, "content_block_delta", delta={"type": "text_delta", "text": piece(n)}
            )
        ),
        "many calls": lambda: frames(anthropic_call),
    },
    Dialect.GEMINI: {
        "text": lambda: frames(lambda n: gemini(0, {"text": piece(n)})),
        "many calls": lambda: frames(
            lambda n: gemini(n, {"functionCall": {"name": f"f{n}", "args": {"a": piece(n)}}})
        ),
    },
}
"""Sound frames of each dialect that go on for ever."""

BYTES: Final[Mapping[str, Chunks]] = {
    "one line": lambda: itertools.repeat(piece(0).encode()),
    "one event": lambda: itertools.repeat(b"data: " + piece(0).encode() + b"\n"),
    "short lines of one event": lambda: itertools.repeat(b"data: ab\n" * 116),
    "names": lambda: itertools.repeat(b"event: " + piece(0).encode() + b"\n"),
    "comments": lambda: itertools.repeat(b": " + piece(0).encode() + b"\n"),
    "blank lines": lambda: itertools.repeat(b"\r\n" * 128),
    "empty events": lambda: itertools.repeat(b"data:\n\n" * 37),
}
"""Bytes that go on for ever in any dialect; where lines are short, fewer of them."""

EVENTS: Final[Mapping[str, Callable[[int], StreamEvent]]] = {
    "text": lambda n: StreamEvent(raw=b"{}", text=piece(n)),
    "refusal": lambda n: StreamEvent(raw=b"{}", text=piece(n), is_refusal=True),
    "thoughts": lambda n: StreamEvent(raw=b"{}", reasoning=piece(n)),
    "text and thoughts": lambda n: StreamEvent(
        raw=b"{}", text=piece(n) if n % 2 else "", reasoning="" if n % 2 else piece(n)
    ),
    "signatures": lambda n: StreamEvent(raw=b"{}", reasoning=f"{n}", signature=piece(n)),
    "one call": lambda n: StreamEvent(
        raw=b"{}",
        tool_calls=(ToolCallDelta(index=0, id="c", name="" if n else "f", arguments=piece(n)),),
    ),
    "many calls": lambda n: StreamEvent(
        raw=b"{}",
        tool_calls=(ToolCallDelta(index=n, id=f"c{n}", name="f", arguments=piece(n)),),
    ),
    "many calls of one number": lambda n: StreamEvent(
        raw=b"{}",
        tool_calls=(ToolCallDelta(index=0, id=f"c{n}", name="f", arguments=piece(n)),),
    ),
}
"""What a decoder may say for ever."""


def growth_bytes(feed: Callable[[int], object], count: int) -> int:
    """How much more is held at most in the second half of a stream than in its first.

    The most of each counts: what is kept up to a bound and then let go swings in between.

    Args:
        feed: takes the next piece, of about 4 KiB; what it gives is dropped.
        count: of pieces.
    """
    tracemalloc.start()
    try:
        for number in range(count // 2):
            feed(number)
        _, most_of_first = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for number in range(count // 2, count):
            feed(number)
        return tracemalloc.get_traced_memory()[1] - most_of_first
    finally:
        tracemalloc.stop()
