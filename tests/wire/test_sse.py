"""SSE framing: tolerant of every line end, the same frames for every split of the bytes."""

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cluster_gw.wire.sse import SseFrame, SseFramer, encode_comment, encode_data


def frames_of(chunks: list[bytes], max_bytes: int = 4096) -> tuple[list[SseFrame], int, bool]:
    framer = SseFramer(max_bytes)
    frames = [frame for chunk in chunks for frame in framer.feed(chunk)]
    return frames + framer.flush(), framer.signs_of_life, framer.is_overflowing


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [SseFrame(b"a"), SseFrame(b"b")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [SseFrame(b"a"), SseFrame(b"b")]),
        (b"data: a\r\rdata: b\r\r", [SseFrame(b"a"), SseFrame(b"b")]),
        (b"data:a\n\n", [SseFrame(b"a")]),
        (b"data:  a \n\n", [SseFrame(b" a ")]),
        (b"data: a\ndata: b\n\n", [SseFrame(b"a\nb")]),
        (b"data: a", [SseFrame(b"a")]),
        (b"data: a\n", [SseFrame(b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [SseFrame(b"a")]),
        (b"event: error\ndata: a\n\n", [SseFrame(b"a", b"error")]),
        (b"data: a\nevent: x\n\ndata: b\n\n", [SseFrame(b"a", b"x"), SseFrame(b"b")]),
        (b"id: 7\nretry: 10\ndata: a\n\n", [SseFrame(b"a")]),
        (b"event: x\n\ndata: a\n\n", [SseFrame(b"a")]),
        (b"\n\n\n\ndata: a\n\n\n\n", [SseFrame(b"a")]),
        (b"data\n\n", [SseFrame(b"")]),
        (b"database: a\n\n", []),
        (b"", []),
    ],
)
def test_streams_are_framed_as_the_standard_says(stream: bytes, expected: list[SseFrame]) -> None:
    assert frames_of([stream])[0] == expected
    assert frames_of([bytes([byte]) for byte in stream])[0] == expected


def test_comments_are_counted_as_signs_of_life() -> None:
    frames, signs_of_life, _ = frames_of([b": ping\n\n", b":\n\ndata: a\n\n"])

    assert frames == [SseFrame(b"a")]
    assert signs_of_life == 2


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: " + b"x" * 200 + b"\n\n"],
        [b"data: ", b"x" * 200, b"\n\n"],
        [b"data: xxxxxxxxxxxx\n"] * 20,
        [b"data: a\ndata: " + b"x" * 200 + b"\n\n"],
        [b": " + b"x" * 200 + b"\n\n"],
    ],
)
def test_a_frame_above_the_bound_overflows_and_ends_the_stream(chunks: list[bytes]) -> None:
    framer = SseFramer(max_bytes=100)
    for chunk in chunks:
        assert framer.feed(chunk) == []

    assert framer.is_overflowing
    assert framer.feed(b"data: a\n\n") == []
    assert framer.flush() == []


def test_frames_before_an_overflow_are_kept() -> None:
    frames, _, is_overflowing = frames_of([b"data: a\n\ndata: " + b"x" * 200 + b"\n\n"], 100)

    assert frames == [SseFrame(b"a")]
    assert is_overflowing


PIECES = st.sampled_from(
    [
        b"data: ",
        b"data:",
        b"a",
        b'{"b":1}',
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b": c",
        b"event: e",
        b"\xef\xbb\xbf",
        b"id: 1",
        b"x" * 30,
        b"data: q\n\n",
        b"data: q\r\n\r\n",
    ]
)


@settings(deadline=None, max_examples=300)
@given(st.lists(PIECES, max_size=25), st.data())
@example([b"data: q\r\n\r\n", b"data: q\n\n"], None)
def test_every_split_of_the_bytes_gives_the_same_frames(
    pieces: list[bytes], data: st.DataObject | None
) -> None:
    stream = b"".join(pieces)
    cuts = (
        sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=8)))
        if data
        else range(len(stream))
    )
    bounds = [0, *cuts, len(stream)]
    split = [stream[start:end] for start, end in itertools.pairwise(bounds)]

    assert frames_of(split, 60) == frames_of([stream], 60)
    assert frames_of(split) == frames_of([stream])


@settings(deadline=None, max_examples=100)
@given(st.lists(st.binary(min_size=1).filter(lambda b: b.strip(b"x\t") != b""), max_size=5))
def test_what_the_writer_wrote_the_reader_reads(payloads: list[bytes]) -> None:
    clean = [p.replace(b"\n", b"").replace(b"\r", b"") for p in payloads]
    stream = b"".join([encode_data(payload) + encode_comment(b"keep-alive") for payload in clean])

    assert [frame.data for frame in frames_of([stream])[0]] == clean
