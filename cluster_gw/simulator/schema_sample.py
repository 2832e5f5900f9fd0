"""JSON values that obey a schema, for answers in a wanted format and arguments of tool calls.

A schema comes from a client and may be nonsense: nothing here raises, nonsense means any text.
"""

from collections.abc import Mapping
from typing import Any, Final

MAX_DEPTH: Final = 12
FULL_DEPTH: Final = 4  # below it only what a schema requires: schemas may contain themselves
MAX_ITEMS: Final = 64
MAX_LENGTH: Final = 1_000_000


class SchemaSample:
    """Samples one schema; texts are made of `word`."""

    def __init__(self, root: Mapping[str, Any], word: str) -> None:
        self._root = root
        self._word = word

    def value(self, schema: Any, depth: int = 0) -> Any:
        """A value for a part of the schema."""
        schema = self._resolved(schema)
        options = _first_list(schema, ("anyOf", "oneOf", "allOf"))
        if "const" in schema:
            return schema["const"]
        if _first_list(schema, ("enum",)):
            return schema["enum"][0]
        if depth >= MAX_DEPTH:
            return self._word
        if options:
            return self.value(options[0], depth + 1)
        return self._typed(schema, depth)

    def _typed(self, schema: Mapping[str, Any], depth: int) -> Any:
        """A value of the schema's first type."""
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list) and kind:
            kind = kind[0]
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        return self._scalar(kind, schema)

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        """The schema a local reference means; chains are followed, a dead end means anything."""
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, Mapping):
                return {}
            if "$ref" not in schema:
                return schema
            target: Any = self._root
            for step in str(schema["$ref"]).removeprefix("#").strip("/").split("/"):
                if step:
                    target = target.get(step) if isinstance(target, Mapping) else None
            schema = target
        return {}

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties")
        required = _first_list(schema, ("required",))
        if not isinstance(properties, Mapping):
            return {}
        return {
            name: self.value(inner, depth + 1)
            for name, inner in properties.items()
            if depth < FULL_DEPTH or name in required
        }

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        count = _whole_number(schema, "minItems", 1 if depth < FULL_DEPTH else 0)
        items = schema.get("items", {"type": "string"})
        return [self.value(items, depth + 1) for _ in range(min(count, MAX_ITEMS))]

    def _scalar(self, kind: Any, schema: Mapping[str, Any]) -> Any:
        if kind in ("integer", "number"):
            return schema.get("minimum", 1)
        if kind == "boolean":
            return True
        if kind == "null":
            return None
        shortest = _whole_number(schema, "minLength", 0)
        longest = _whole_number(schema, "maxLength", max(shortest, len(self._word)))
        return self._word.ljust(shortest, "x")[:longest]


def sample_value(schema: Mapping[str, Any], word: str) -> Any:
    """A JSON value that obeys a schema; texts are made of `word`.

    Understands type, enum, const, properties, items, minItems, minLength, maxLength, minimum,
    anyOf, oneOf, allOf (its first part) and local references; anything else is ignored.
    """
    return SchemaSample(schema, word).value(schema)


def _first_list(schema: Mapping[str, Any], names: tuple[str, ...]) -> list[Any]:
    """The first of these fields that is a list with something in it."""
    for name in names:
        found = schema.get(name)
        if isinstance(found, list) and found:
            return found
    return []


def _whole_number(schema: Mapping[str, Any], name: str, otherwise: int) -> int:
    found = schema.get(name)
    return found if isinstance(found, int) and 0 <= found <= MAX_LENGTH else otherwise
