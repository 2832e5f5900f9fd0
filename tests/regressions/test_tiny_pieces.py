"""What is kept up to a bound in bytes takes about as many, however tiny the pieces it comes in."""

import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from cluster_gw.providers.openai_whole import WholeAnswerDecoder
from cluster_gw.wire.sse import SseFramer

PIECES = 20_000


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
