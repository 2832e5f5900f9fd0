"""Takes the JSON that a client asked for out of what a model put around it.

Only fences and prose are taken away. What is inside is never changed: a model that breaks JSON
itself is better asked elsewhere than guessed at.
"""

import re
from typing import Any, Final

from cluster_gw.canonical.conversation import AnswerFormat
from cluster_gw.mending.json_text import document_of, is_json
from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError, read_any

FENCE: Final = "```"
LABEL: Final = re.compile(r"[\w-]*\s*")
MARK: Final = "\ufeff"  # of byte order; some models send one


def healed(text: str, wanted: AnswerFormat) -> str | None:
    """The JSON of an answer: the text itself where nothing stands around it; None without any."""
    if fits(text, wanted):
        return text
    bare = text.strip().removeprefix(MARK)
    candidates = [bare, *fenced(bare), *slices(bare)]
    return next((one for one in candidates if fits(one, wanted)), None)


def fenced(text: str) -> list[str]:
    """What stands in the first fence, without the name of its language; none without a fence."""
    start = text.find(FENCE)
    end = text.find(FENCE, start + len(FENCE))
    if start < 0 or end < 0:
        return []
    block = text[start + len(FENCE) : end]
    label = LABEL.match(block)
    return [block[label.end() if label else 0 :].strip()]


def slices(text: str) -> list[str]:
    """What stands between the first opening bracket and its last counterpart, for both kinds."""
    found: list[tuple[int, str]] = []
    for opening, closing in ("{}", "[]"):
        start, end = text.find(opening), text.rfind(closing)
        if 0 <= start < end:
            found.append((start, text[start : end + 1]))
    return [part for _, part in sorted(found)]


def fits(text: str, wanted: AnswerFormat) -> bool:
    """Whether a text is JSON of the kind that was asked for."""
    if not is_json(text):
        return False
    kind = None if wanted.schema is None else kind_of(wanted.schema)
    document = document_of(text)
    if kind is None:
        # Whoever asked for any object got none in a lone number or text.
        return wanted.schema is not None or isinstance(document, dict | list)
    return isinstance(document, dict if kind == "object" else list)


def kind_of(schema: Any) -> str | None:
    """`object` or `array`, where the schema says plainly that it wants one."""
    try:
        document = read_any(schema)
    except (InvalidJsonError, UnexpectedShapeError):
        return None
    kind = document.get("type") if isinstance(document, dict) else None
    return kind.lower() if isinstance(kind, str) and kind.lower() in {"object", "array"} else None
