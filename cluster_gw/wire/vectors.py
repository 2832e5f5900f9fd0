"""One vector as JSON: an array of numbers, or base64 of little-endian float32."""

import base64
import binascii
import struct
from collections.abc import Sequence
from typing import Final

import msgspec

from cluster_gw.wire.json_codec import InvalidJsonError, JsonReader, UnexpectedShapeError, raw

FLOAT_BYTES: Final = 4
BASE64_GROUP: Final = 4
GROUP_BYTES: Final = 3
NOT_OF_NUMBERS: Final = (b"n", b"u", b'"', b"{")  # `null` is what some write for NaN
BLANK: Final = b"[] \r\n\t"
QUOTE: Final = ord('"')
NUMBERS_READER: Final = JsonReader[list[float]](list[float])
TEXT_READER: Final = JsonReader[str](str)


def is_base64(item: msgspec.Raw) -> bool:
    """Whether a vector is written as base64, as far as its first character tells."""
    return memoryview(item)[0] == QUOTE


def length_of(item: msgspec.Raw) -> int | None:
    """How many numbers a vector has, told without reading them; None when it is none."""
    text = bytes(item)
    if is_base64(item):
        size = (len(text) - 2) // BASE64_GROUP * GROUP_BYTES - text[-3:].count(b"=")
        return size // FLOAT_BYTES if size > 0 and size % FLOAT_BYTES == 0 else None
    is_flat = text.startswith(b"[") and text.rfind(b"[") == 0
    if not is_flat or any(mark in text for mark in NOT_OF_NUMBERS) or not text.strip(BLANK):
        return None
    return text.count(b",") + 1


def as_numbers(item: msgspec.Raw) -> msgspec.Raw:
    """The vector as an array of numbers.

    Raises:
        ValueError: it is no vector.
    """
    return raw(read_vector(item)) if is_base64(item) else item


def as_base64(item: msgspec.Raw) -> msgspec.Raw:
    """The vector as base64.

    Raises:
        ValueError: it is no vector, or has a number that no float32 holds.
    """
    return item if is_base64(item) else packed(read_vector(item))


def packed(numbers: Sequence[float]) -> msgspec.Raw:
    """Numbers as base64.

    Raises:
        ValueError: a number is outside the range of a float32.
    """
    try:
        data = struct.pack(f"<{len(numbers)}f", *numbers)
    except (OverflowError, struct.error) as error:
        raise ValueError(str(error)) from None
    return msgspec.Raw(b'"' + base64.b64encode(data) + b'"')


def read_vector(item: msgspec.Raw) -> tuple[float, ...]:
    """The numbers of a vector.

    Raises:
        ValueError: it is no vector.
    """
    try:
        if not is_base64(item):
            return tuple(NUMBERS_READER.read(item))
        data = base64.b64decode(TEXT_READER.read(item), validate=True)
        return struct.unpack(f"<{len(data) // FLOAT_BYTES}f", data)
    except (InvalidJsonError, UnexpectedShapeError, binascii.Error, struct.error) as error:
        raise ValueError(str(error)) from None
