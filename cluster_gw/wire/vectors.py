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
OF_NUMBERS: Final = b"+-.0123456789Ee \r\n\t"
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
    frame = text.translate(None, OF_NUMBERS)
    count = len(frame) - 1
    if frame != b"[" + b"," * (count - 1) + b"]" or (count == 1 and not text.strip(BLANK)):
        return None
    return count


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
