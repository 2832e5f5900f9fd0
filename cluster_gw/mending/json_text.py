"""Finds JSON inside of text: where an object ends, and what it says."""

import re
from typing import Any, Final

from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError, read_any

MARKS: Final = re.compile(r'["\\{}\[\]]')


def end_of_value(text: str, start: int) -> int | None:
    """Where the object or array that begins at `start` ends; None when it does not.

    Looks at brackets and strings alone, each once: what it finds may still be no JSON.
    """
    depth, in_string, skipped = 0, False, -1
    for mark in MARKS.finditer(text, start):
        character = mark.group()
        if mark.start() == skipped:
            continue
        if in_string:
            if character == "\\":
                skipped = mark.start() + 1
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "{[":
            depth += 1
        elif character != "\\":
            depth -= 1
            if depth <= 0:
                return mark.end()
    return None


def utf8(text: str) -> bytes:
    """The bytes of a text of an upstream, half an emoji and all."""
    return text.encode("utf-8", "surrogatepass")


def is_json(text: str) -> bool:
    """Whether a text is one JSON document."""
    try:
        read_any(utf8(text))
    except (InvalidJsonError, UnexpectedShapeError):
        return False
    return True


def document_of(text: str) -> Any:
    """The document of a text; None for a text that is none, or says null."""
    try:
        return read_any(utf8(text))
    except (InvalidJsonError, UnexpectedShapeError):
        return None
