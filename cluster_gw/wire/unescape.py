"""Takes escapes off a text for whoever looks for something in it, and tells where each part stood.

Seen in what upstreams write: percent-encoding of URLs, JSON's and Python's backslashes, HTML's
references, and one inside another.
"""

import html
import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

MOST_LAYERS: Final = 4
"""Escapes of escapes that are taken off; a body in a URL in a log line in a body makes four."""

ESCAPE: Final = re.compile(
    r"%(?:u[0-9a-f]{4}|[0-9a-f]{2})"
    r"|\\(?:u\{[0-9a-f]{1,6}\}|u[0-9a-f]{4}|x[0-9a-f]{2}|[0-7]{3}|[\\/\"'nrt])"
    r"|&(?:#(?:[0-9]{1,7}|x[0-9a-f]{1,6});?|[a-z]{2,31};)",
    re.IGNORECASE,
)
SPACES: Final = MappingProxyType({"n": "\n", "r": "\r", "t": "\t"})
HIGHEST: Final = 0x10FFFF


class Layer(NamedTuple):
    """A text under so many layers of escapes.

    Attributes:
        text: what it says.
        at: where in the text of the first layer each character begins; one more for the end.
    """

    text: str
    at: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where in the text of the first layer `text[start:end]` stands."""
        return self.at[start], self.at[end]


def layers(text: str) -> Iterator[Layer]:
    """Give a text as it is, then with one layer of escapes less each, as far as it has any."""
    layer = Layer(text, range(len(text) + 1))
    yield layer
    for _ in range(MOST_LAYERS):
        if ESCAPE.search(layer.text) is None:
            return
        layer = _peeled(layer)
        yield layer


def _peeled(layer: Layer) -> Layer:
    text, at, done = layer.text, layer.at, 0
    pieces: list[str] = []
    places: list[int] = []
    for found in ESCAPE.finditer(text):
        start, end = found.span()
        pieces += text[done:start], _meaning(found.group())
        places += at[done : start + 1]
        done = end
    pieces.append(text[done:])
    places += at[done:]
    return Layer("".join(pieces), places)


def _meaning(escape: str) -> str:
    """The one character that an escape stands for; a blank for what stands for none."""
    mark, rest = escape[0], escape[1:]
    if mark == "&":
        meant = html.unescape(escape)
        return meant if len(meant) == 1 else " "
    if mark == "\\" and len(rest) == 1:
        return SPACES.get(rest, rest)
    if mark == "\\" and rest[0].isdigit():
        return chr(int(rest, 8))
    digits = rest.strip("uUxX{}")
    code = int(digits, 16)
    return chr(code) if code <= HIGHEST else " "
