"""What is kept up to a bound in bytes takes about as many, however tiny the pieces it comes in."""

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.mending.calls import MAX_HELD_EVENTS
from cluster_gw.mending.policy import MendingPolicy
from cluster_gw.mending.stream import Mender
from cluster_gw.providers.openai_whole import WholeAnswerDecoder
from cluster_gw.server.body import read_body
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.messages_blocks import MAX_KEPT
from cluster_gw.surfaces.messages_stream import WrittenMessages
from cluster_gw.wire.sse import SseFramer

PIECES = 20_000
FRAME = b"{}"
HEAD = StreamHead(id="0" * 32, model="m", created_s=1, is_native=False)


def pieces(start: bytes) -> Iterator[bytes]:
    """Each of them made for itself, as those of a connection are."""
    for number in range(PIECES):
        yield start + b"%05d\n" % number


def held_by(take: Callable[[bytes], object], start: bytes = b"") -> int:
    """Bytes that stay after all pieces went into it."""
    tracemalloc.start()
    try:
        for piece in pieces(start):
            take(piece)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("take", "start"),
    [(WholeAnswerDecoder(None).decode, b""), (SseFramer().feed, b"data:")],
    ids=["whole answer", "lines of one event"],
)
def test_tiny_pieces_take_no_more_than_their_size(
    take: Callable[[bytes], object], start: bytes
) -> None:
    assert held_by(take, start) < 2 * sum(map(len, pieces(start)))


async def test_tiny_pieces_of_a_request_take_no_more_than_their_size() -> None:
    left = pieces(b"")
    tracemalloc.start()
    held: list[int] = []

    async def receive() -> dict[str, Any]:
        piece = next(left, b"")
        if not piece:
            held.append(tracemalloc.get_traced_memory()[0])
        return {"type": "http.request", "body": piece, "more_body": bool(piece)}

    try:
        body = await read_body(receive, {}, 1_000_000)
    finally:
        tracemalloc.stop()

    assert body == b"".join(pieces(b""))
    assert held[0] < 2 * len(body)


def fragment(text: str, *, is_first: bool = False) -> StreamEvent:
    call_id, name = ("c", "f") if is_first else (None, None)
    delta = ToolCallDelta(index=0, id=call_id, name=name, arguments=text)
    return StreamEvent(raw=FRAME, tool_calls=(delta,))


@pytest.mark.parametrize("later", [fragment("[1"), StreamEvent(raw=FRAME, text="so")])
def test_what_waits_for_the_end_of_a_call_has_a_bound(later: StreamEvent) -> None:
    mender = Mender(MendingPolicy(), tools=lambda: {"f": None}, call_id="c")
    assert mender.take(fragment("[1", is_first=True)) == []

    given = next(given for given in iter(lambda: mender.take(later), None) if given)

    assert len(given) == MAX_HELD_EVENTS + 1


def test_arguments_in_tiny_pieces_are_kept_as_one_text() -> None:
    stream = WrittenMessages(HEAD)
    stream.encode(fragment("{", is_first=True))

    def take(piece: bytes) -> None:
        stream.encode(fragment(piece[-3:-1].decode()))

    assert held_by(take) < MAX_KEPT / 2


@pytest.mark.parametrize("later", [StreamEvent(text="a"), StreamEvent(reasoning="so")])
def test_what_waits_for_the_end_of_a_call_in_the_text_has_a_bound(later: StreamEvent) -> None:
    mender = Mender(MendingPolicy(), tools=lambda: {"f": None}, call_id="c")
    assert mender.take(StreamEvent(raw=FRAME, text="<tool_call>")) == []

    given = next(given for given in iter(lambda: mender.take(later), None) if given)

    assert len(given) == MAX_HELD_EVENTS + 1
