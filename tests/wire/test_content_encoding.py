"""Content codings are undone piece by piece, completely, and never into a bomb."""

import gzip
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.wire.content_encoding import (
    ContentDecoder,
    ContentEncodingError,
    is_known_encoding,
)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def two_members(data: bytes) -> bytes:
    half = len(data) // 2
    return gzip.compress(data[:half]) + b"\0\0" + gzip.compress(data[half:]) + b"\0" * 9


def two_frames(data: bytes) -> bytes:
    half = len(data) // 2
    packer = zstandard.ZstdCompressor()
    return packer.compress(data[:half]) + packer.compress(data[half:])


def brotli_bytes(data: bytes) -> bytes:
    return bytes(brotli.compress(data))


PACKERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("x-gzip", two_members),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("br", brotli_bytes),
    ("zstd", two_frames),
    ("identity", bytes),
    ("", bytes),
    ("deflate, GZIP", lambda data: gzip.compress(zlib.compress(data))),
]


def decode(encoding: str, chunks: list[bytes]) -> bytes:
    decoder = ContentDecoder(encoding)
    out = b"".join([decoder.feed(chunk) for chunk in chunks])
    decoder.finish()
    return out


@pytest.mark.parametrize(("encoding", "pack"), PACKERS)
def test_every_split_gives_the_content(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    content = b"".join(b'data: {"n":%d}\n\n' % n for n in range(300))
    packed = pack(content)

    for size in (1, 7, 1000, len(packed)):
        chunks = [packed[start : start + size] for start in range(0, len(packed), size)]
        assert decode(encoding, chunks) == content


@pytest.mark.parametrize(("encoding", "pack"), PACKERS[:6])
def test_a_cut_body_is_noticed_at_its_end(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(b"some content that is long enough to be cut" * 10)
    decoder = ContentDecoder(encoding)
    decoder.feed(packed[: len(packed) // 3])

    with pytest.raises(ContentEncodingError):
        decoder.finish()


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "identity", "unknown"])
def test_an_empty_body_is_complete(encoding: str) -> None:
    ContentDecoder(encoding).finish()


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_broken_data_is_a_named_error(encoding: str) -> None:
    with pytest.raises(ContentEncodingError):
        decode(encoding, [b"\x01this is no compressed data at all" * 20])


def test_an_unknown_coding_is_refused_by_the_first_byte() -> None:
    decoder = ContentDecoder("gzip, compress")

    with pytest.raises(ContentEncodingError, match="unknown"):
        decoder.feed(b"x")


@pytest.mark.parametrize(
    ("encoding", "is_known"),
    [("gzip", True), ("BR , zstd", True), ("", True), ("compress", False), ("gzip, x", False)],
)
def test_known_codings_are_told(encoding: str, is_known: bool) -> None:
    assert is_known_encoding(encoding) is is_known


@pytest.mark.parametrize(("encoding", "pack"), [PACKERS[i] for i in (0, 1, 2, 3, 4, 5, 8)])
def test_a_bomb_is_stopped_near_its_bound(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    bomb = pack(bytes(30_000_000))
    decoder = ContentDecoder(encoding, free_bytes=100_000, max_ratio=20)

    pieces = [bomb[start : start + 512] for start in range(0, len(bomb), 512)]

    pieces = [bomb[start : start + 512] for start in range(0, len(bomb), 512)]

    with pytest.raises(ContentEncodingError, match="bound"):
        b"".join(map(decoder.feed, pieces))


def test_ordinary_repetition_is_no_bomb() -> None:
    content = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n' * 20_000

    assert decode("gzip", [gzip.compress(content)]) == content


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(["gzip", "deflate", "br", "zstd"]), st.lists(st.binary(), max_size=4))
def test_any_bytes_decode_or_give_a_named_error(encoding: str, chunks: list[bytes]) -> None:
    try:
        decode(encoding, chunks)
    except ContentEncodingError as error:
        assert str(error)  # noqa: PT017 - both ends are right, a third kind is not
