"""Ways in which a secret may stand in what somebody writes."""

import base64
import html
import json
import random
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, quote_plus

Disguise = Callable[[str, random.Random], str]


def _mixed(one: Callable[[str], str]) -> Disguise:
    """Some characters as they are, some written otherwise."""
    return lambda secret, dice: "".join(one(c) if dice.random() < 0.5 else c for c in secret)


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _unicode(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" for c in text)


def _numbers(text: str) -> str:
    return "".join(f"&#{ord(c)};" for c in text)


def _basic(secret: str, dice: random.Random) -> str:
    user = "u" * dice.randint(0, 5)
    return base64.b64encode(f"{user}:{secret}".encode()).decode()


def _inside(secret: str, dice: random.Random) -> str:
    text = json.dumps(
        {"user": "x" * dice.randint(0, 5), "key": secret, "more": dice.randint(0, 99)}
    )
    return base64.urlsafe_b64encode(text.encode()).decode()


def _split(secret: str, dice: random.Random) -> str:
    size = dice.randint(1, 20)
    blank = dice.choice([" ", "\n", "\r\n\t", "\u200b", "\\n", "%20", "&#10;"])
    return blank.join(secret[at : at + size] for at in range(0, len(secret), size))


DISGUISES: Final[dict[str, Disguise]] = {
    "plain": lambda s, _: s,
    "upper": lambda s, _: s.upper(),
    "lower": lambda s, _: s.lower(),
    "percent": lambda s, _: quote(s, safe=""),
    "form": lambda s, _: quote_plus(s),
    "percent all": lambda s, _: _percent(s),
    "percent mixed": _mixed(_percent),
    "percent twice": lambda s, _: quote(_percent(s), safe=""),
    "json": lambda s, _: json.dumps(s)[1:-1],
    "json slashes": lambda s, _: json.dumps(s)[1:-1].replace("/", "\\/"),
    "json in json": lambda s, _: json.dumps(json.dumps({"k": s})),
    "unicode": lambda s, _: _unicode(s),
    "unicode mixed": _mixed(_unicode),
    "hex escapes": lambda s, _: "".join(f"\\x{byte:02x}" for byte in s.encode()),
    "octal": lambda s, _: "".join(f"\\{byte:03o}" for byte in s.encode()),
    "html": lambda s, _: html.escape(s),
    "html numbers": lambda s, _: _numbers(s),
    "html mixed": _mixed(_numbers),
    "percent in json": lambda s, _: _unicode(quote(s, safe="")),
    "html in percent": lambda s, _: quote(_numbers(s), safe=""),
    "base64": lambda s, _: base64.b64encode(s.encode()).decode(),
    "base64 in percent": lambda s, _: quote(base64.b64encode(s.encode()).decode(), safe=""),
    "basic": _basic,
    "base64 of json": _inside,
    "base64 in lines": lambda s, _: base64.encodebytes(s.encode()).decode(),
    "hex": lambda s, _: s.encode().hex(),
    "split": _split,
    "bytes": lambda s, _: repr(s.encode()),
    "head": lambda s, _: s[: len(s) * 2 // 3] + "...",
    "tail": lambda s, _: "..." + s[len(s) // 3 :],
}

CHARACTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
SHORT_SHARE: Final = 0.3
"""Of passwords that no shape gives away."""
SHAPES: Final = ("sk-proj-{}", "sk-ant-api03-{}", "AIzaSy{}", "gsk_{}", "{}", "hf_{}", "pass/{}+=&")


def secret(dice: random.Random, shape: str | None = None) -> str:
    """A credential: a key of 24 and more characters, or a password that looks like a word."""
    if shape is None and dice.random() < SHORT_SHARE:
        return "".join(dice.choices(LETTERS, k=dice.randint(16, 20)))
    body = "".join(dice.choices(CHARACTERS, k=dice.randint(24, 60)))
    return (shape or dice.choice(SHAPES)).format(body)
