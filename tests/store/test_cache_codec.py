"""What is stored of an answer is read as it was, or not at all."""

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.store.cache_codec import (
    INLINE_BYTES,
    SIZE,
    Entry,
    EntryCodec,
    EntryUnreadableError,
    Head,
    takes_long,
)
from cluster_gw.store.cache_feed import Ended, FeedCodec, Piece
from cluster_gw.store.sealing import seal_of
from tests.store.caching import HEAD, entry_of

CODECS = tuple(EntryCodec(seal_of(key)) for key in (None, "ab" * 32))
SMALL, LARGE = st.binary(max_size=500), st.binary(max_size=30).map(lambda some: some * 9_999)
COUNTS = st.integers(0, 2**63)
ENTRIES = st.builds(
    Entry,
    payload=SMALL | LARGE,
    prompt_tokens=COUNTS,
    completion_tokens=COUNTS,
    created_ms=COUNTS,
)
PIECES = st.binary(max_size=50) | st.builds(Head) | st.just(Ended())


@given(entry=ENTRIES, codec=st.sampled_from(CODECS), name=st.text(max_size=9))
def test_an_entry_is_read_as_it_was_written(entry: Entry, codec: EntryCodec, name: str) -> None:
    stored = codec.encode(name, entry)

    assert codec.decode(name, stored) == entry
    assert codec.apart().decode(name, stored) == entry
    assert takes_long(stored) == (SIZE.unpack_from(stored)[0] > INLINE_BYTES)


@given(codec=st.sampled_from(CODECS), at=st.integers(0, 10_000), bits=st.integers(1, 255))
def test_a_damaged_entry_is_never_read_as_another(codec: EntryCodec, at: int, bits: int) -> None:
    entry = entry_of(b"data: {}\n\n" * 20)
    stored = bytearray(codec.encode("name", entry))
    stored[at % len(stored)] ^= bits

    try:
        read = codec.decode("name", bytes(stored))
    except EntryUnreadableError:
        return
    assert read == entry  # what was damaged is no part of it


@given(codec=st.sampled_from(CODECS), stored=st.binary(max_size=60))
def test_garbage_is_told_and_nothing_else_is_raised(codec: EntryCodec, stored: bytes) -> None:
    takes_long(stored)
    with pytest.raises(EntryUnreadableError):
        codec.decode("name", stored)


def test_an_entry_that_claims_to_be_huge_is_not_unpacked() -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(81 * 1024 * 1024))

    with pytest.raises(EntryUnreadableError, match="larger"):
        CODECS[0].decode("name", SIZE.pack(1) + bomb)


def test_formats_differ_by_the_master_key_and_tell_nothing_of_it() -> None:
    formats = {codec.format for codec in CODECS} | {EntryCodec(seal_of("cd" * 32)).format}

    assert len(formats) == 3
    assert all(len(one) <= 10 for one in formats)


@given(piece=PIECES, key=st.sampled_from((None, "ab" * 32)), place=st.integers(0, 99))
def test_a_piece_is_read_as_it_was_written(
    piece: Piece | Ended, key: str | None, place: int
) -> None:
    codec = FeedCodec(seal_of(key), "feed")

    assert codec.decode(place, codec.encode(place, piece)) == piece


@given(stored=st.binary(max_size=30), key=st.sampled_from((None, "ab" * 32)))
def test_what_is_no_piece_is_told(stored: bytes, key: str | None) -> None:
    codec = FeedCodec(seal_of(key), "feed")
    try:
        piece = codec.decode(0, stored)
    except EntryUnreadableError:
        return
    assert codec.encode(0, piece)[:1] == stored[:1]


@pytest.mark.parametrize("key", [None, "ab" * 32])
def test_a_sealed_piece_cannot_change_its_place(key: str | None) -> None:
    codec = FeedCodec(seal_of(key), "feed")
    stored = codec.encode(1, HEAD)

    if key is None:
        assert codec.decode(0, stored) == HEAD
    else:
        with pytest.raises(EntryUnreadableError, match="UnsealError"):
            codec.decode(0, stored)
