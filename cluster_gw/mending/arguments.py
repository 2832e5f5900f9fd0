"""Puts the arguments of a call right: encoded twice, or with arrays and objects written as text.

Nothing else is touched, and nothing is rewritten that is right: what the schema does not demand is
the model's own.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cluster_gw.core.outcome.tool_schema import resolved
from cluster_gw.mending.json_text import document_of
from cluster_gw.wire.json_codec import write

MAX_DEPTH: Final = 16
MAX_ENCODINGS: Final = 3
MAX_VISITS: Final = 10_000  # of parts of one call; the rest is left as it is
HOLDERS: Final = frozenset({"array", "object"})
CHOICES: Final = ("anyOf", "oneOf", "allOf")


def repaired(arguments: str, schema: Any) -> str | None:
    """The arguments as they should be; None where they are right, or beyond repair.

    Args:
        arguments: as the model wrote them.
        schema: that the client declared; None without one.
    """
    given = document_of(arguments)
    text, document = arguments, given
    for _ in range(MAX_ENCODINGS):
        if not isinstance(document, str):
            break
        text, document = document, document_of(document)
    if not isinstance(document, dict):
        return None
    walk = Walk(schema)
    mended = walk.mended(schema, document, 0)
    if walk.is_changed:
        return write(mended).decode()
    return None if isinstance(given, dict) else text


def may_hold_text(schema: Any) -> bool:
    """Whether a call of this schema may have arrays or objects that were written as text."""
    walk = Walk(schema)
    return any(HOLDERS & walk.types(part) for part in walk.members(walk.resolved(schema)).values())


class Walk:
    """One walk over arguments along a schema.

    Attributes:
        is_changed: something was put right.
    """

    def __init__(self, root: Any) -> None:
        self.is_changed = False
        self._root = root
        self._left = MAX_VISITS

    def mended(self, schema: Any, value: Any, depth: int) -> Any:
        """The value with all parts put right that the schema wants as arrays or objects."""
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            return value
        schema = self.resolved(schema)
        if isinstance(value, str):
            found = self._unwrapped(schema, value)
            if found is None:
                return value
            self.is_changed = True
            value = found
        if isinstance(value, dict):
            members = self.members(schema)
            return {
                name: self.mended(members[name], part, depth + 1) if name in members else part
                for name, part in value.items()
            }
        if isinstance(value, list):
            items = next((s["items"] for s in self.choices(schema) if "items" in s), None)
            if isinstance(items, dict):
                return [self.mended(items, part, depth + 1) for part in value]
        return value

    def types(self, schema: Any) -> frozenset[str]:
        """The types a schema allows; none where it does not say."""
        found: set[str] = set()
        for one in self.choices(self.resolved(schema)):
            named = one.get("type")
            found.update(
                name.lower()
                for name in (named if isinstance(named, list) else [named])
                if isinstance(name, str)
            )
        return frozenset(found)

    def members(self, schema: Any) -> Mapping[str, Any]:
        """The schema of each member of an object."""
        return {
            name: part
            for one in self.choices(schema)
            if isinstance(one.get("properties"), dict)
            for name, part in one["properties"].items()
        }

    def choices(self, schema: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
        """A schema and all it says by way of others."""
        if not isinstance(schema, dict) or depth > MAX_DEPTH or self._left < 0:
            return
        yield schema
        for name in CHOICES:
            others = schema.get(name)
            for other in others if isinstance(others, list) else ():
                self._left -= 1
                yield from self.choices(self.resolved(other), depth + 1)

    def resolved(self, schema: Any) -> Any:
        """What a schema refers to, else the schema itself."""
        return resolved(self._root, schema)

    def _unwrapped(self, schema: Any, text: str) -> Any:
        """What a text stands for where only arrays or objects may stand; None to leave it."""
        wanted = self.types(schema)
        if "string" in wanted or not HOLDERS & wanted or not text.lstrip().startswith(("{", "[")):
            return None
        found = document_of(text)
        kind = "object" if isinstance(found, dict) else "array"
        return found if isinstance(found, dict | list) and kind in wanted else None
