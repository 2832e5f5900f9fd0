"""What scripts use of the library `struct` that Redis gives them: whole numbers of some bytes."""

import re
from typing import Final, Literal

BYTES: Final = "latin-1"
"""How Lua's texts, which are bytes, are written here: a letter for each."""
NUMBER: Final = re.compile(r"([BH]|I(\d))")
SIZES: Final = {"B": 1, "H": 2}


def pack(form: str, *numbers: float) -> str:
    """Put numbers into bytes; what does not fit loses its upper part, as there."""
    parts = [
        (int(number) % 256**size).to_bytes(size, _order(form))
        for number, size in zip(numbers, _sizes(form), strict=True)
    ]
    return b"".join(parts).decode(BYTES)


def unpack(form: str, text: str, place: float = 1) -> tuple[int, ...]:
    """Read numbers from the byte `place`, the first being 1, and tell which byte comes next.

    Raises:
        ValueError: there are not enough.
    """
    data, at, numbers = text.encode(BYTES), int(place) - 1, []
    for size in _sizes(form):
        if at + size > len(data):
            raise ValueError("data string too short")
        numbers.append(int.from_bytes(data[at : at + size], _order(form)))
        at += size
    return *numbers, at + 1


def to_lua(text: str) -> str:
    """Give a text of a client as Lua has it."""
    return text.encode("utf-8", "surrogateescape").decode(BYTES)


def from_lua(text: str) -> str:
    """Give a text of Lua as a client has it."""
    return text.encode(BYTES).decode("utf-8", "surrogateescape")


def _sizes(form: str) -> list[int]:
    return [SIZES.get(kind) or int(size) for kind, size in NUMBER.findall(form[1:])]


def _order(form: str) -> Literal["big", "little"]:
    return "big" if form.startswith(">") else "little"
