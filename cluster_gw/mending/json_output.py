"""Takes the JSON that a client asked for out of what a model put around it.

Only fences and prose are taken away. What is inside is never changed: a model that breaks JSON
itself is better asked elsewhere than guessed at.
"""

import re
from typing import Final

from cluster_gw.canonical.conversation import AnswerFormat
from cluster_gw.mending.json_text import document_of
from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError, read_any

FENCE: Final = "```"
LABEL: Final = re.compile(r"[\w-]*\s*")
MARK: Final = "\ufeff"  # of byte order; some models send one


def healed(text: str, wanted: AnswerFormat) -> str | None:
    """The JSON of an answer: the text itself where nothing stands around it; None without any.

    A schema that does not plainly want an object or an array may mean a bare word, so nothing that
    was said is wrong for it.
    """
    kinds = kinds_of(wanted)
    if fits(text, kinds):
        return text
    bare = text.strip().removeprefix(MARK)
    candidates = [bare, *fenced(bare), *slices(bare)]
    found = next((one for one in candidates if fits(one, kinds)), None)
    return text if found is None and not kinds else found


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


def fits(text: str, kinds: tuple[type, ...]) -> bool:
    """Whether a text is JSON of one of these kinds; of any that holds others where there are none.

    A lone number or text is JSON, and hardly ever what was asked for.
    """
    return isinstance(document_of(text), kinds or (dict, list))


def kinds_of(wanted: AnswerFormat) -> tuple[type, ...]:
    """What the JSON must be; none where the schema does not say it plainly."""
    if wanted.schema is None:
        return (dict, list)
    try:
        document = read_any(wanted.schema)
    except (InvalidJsonError, UnexpectedShapeError):
        return ()
    if not isinstance(document, dict):
        return ()
    kind = document.get("type", "object" if "properties" in document else None)
    named = kind.lower() if isinstance(kind, str) else ""
    return {"object": (dict,), "array": (list,)}.get(named, ())
