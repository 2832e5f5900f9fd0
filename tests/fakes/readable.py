"""How much of a secret can be read in a text by whoever knows all usual codes: the judge of leaks.

It shares nothing with what strikes secrets: texts are decoded every way there is, again and again,
and looked at. That is slow, so most texts are only looked at for what was written, see `Planted`.
"""

import base64
import binascii
import html
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Final
from urllib.parse import unquote_plus

READABLE: Final = 12
"""Characters in a row of a secret that must not be read."""
DEPTH: Final = 4
TOKEN: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}")
HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2}){8,}")
BACKSLASH: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[0-7]{3}|.)")
NOISE: Final = re.compile(r"[^a-z0-9]+")


class Planted:
    """A secret, and how it was written somewhere."""

    def __init__(self, secret: str, written: str) -> None:
        self.secret, self.written = secret, written

    @cached_property
    def windows(self) -> tuple[str, ...]:
        """Parts of what was written, of which one stands wherever much of it does."""
        text = plain(self.written)
        return tuple(text[at : at + READABLE] for at in range(len(text) - READABLE + 1))

    def is_seen(self, text: str) -> bool:
        """Whether a part of what was written stands in a text."""
        dense = plain(text)
        return any(part in dense for part in self.windows)

    def read_in(self, text: str) -> str:
        """A part of the secret that can be read in a text, however it is spelt; or nothing."""
        whole = "".join(self.secret.lower().split())
        parts = [whole[at : at + READABLE] for at in range(len(whole) - READABLE + 1)]
        seen: set[str] = set()
        for view in views(text, seen):
            dense = "".join(view.lower().split())
            for part in parts:
                if part in dense:
                    return part
        return ""


def plain(text: str) -> str:
    """Letters and digits of a text."""
    return NOISE.sub("", text.lower())


def views(text: str, seen: set[str], depth: int = DEPTH) -> Iterator[str]:
    """A text, and what it says under all codes, each once."""
    if text in seen:
        return
    seen.add(text)
    yield text
    if depth:
        for decoded in once(text):
            yield from views(decoded, seen, depth - 1)


def once(text: str) -> Iterator[str]:
    """What a text says under one code."""
    if "%" in text or "+" in text:
        yield unquote_plus(text)
    if "&" in text:
        yield html.unescape(text)
    if "\\" in text:
        yield BACKSLASH.sub(lambda found: unescaped(found.group(1)), text)
    for token in TOKEN.findall("".join(text.split())):
        for start in range(4):
            part = token[start:].replace("-", "+").replace("_", "/")
            part = part[: len(part) // 4 * 4]
            try:
                yield base64.b64decode(part).decode("latin-1")
            except binascii.Error:
                continue
    for token in HEX.findall(text):
        yield bytes.fromhex(token).decode("latin-1")


def unescaped(code: str) -> str:
    """The character behind a backslash."""
    if code[0] in "ux" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code.isdigit() and len(code) == 3:
        return chr(int(code, 8))
    return {"n": "\n", "r": "\r", "t": "\t"}.get(code, code)
