"""Vectors in both of their forms."""

import base64
import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.wire.json_codec import raw
from cluster_gw.wire.vectors import as_base64, as_numbers, is_base64, length_of, read_vector

NUMBERS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1)


@given(NUMBERS)
def test_a_vector_is_the_same_in_both_forms(numbers: list[float]) -> None:
    written = raw(numbers)
    text = as_base64(written)

    assert is_base64(text)
    assert not is_base64(written)
    assert list(read_vector(text)) == numbers
    assert list(read_vector(as_numbers(text))) == numbers
    assert length_of(text) == length_of(written) == len(numbers)
    assert as_base64(text) is text
    assert as_numbers(written) is written


def test_base64_is_of_little_endian_float32() -> None:
    expected = base64.b64encode(struct.pack("<2f", 0.5, -2.0)).decode()

    assert msgspec.json.decode(as_base64(raw([0.5, -2.0]))) == expected


@pytest.mark.parametrize(
    "text",
    [b"[]", b"[ ]", b"{}", b"null", b"1", b'""', b'"abc"', b"[null]", b"[1,null]", b"[[1]]"],
)
def test_what_is_no_vector_has_no_length(text: bytes) -> None:
    assert length_of(msgspec.Raw(text)) is None


@pytest.mark.parametrize("text", [b'["a"]', b'"%%%%%%%%"', b'"AAAA"', b"[1,true]"])
def test_what_cannot_be_read_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_vector(msgspec.Raw(text))


def test_a_number_that_no_float32_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="float"):
        as_base64(raw([1e300]))
