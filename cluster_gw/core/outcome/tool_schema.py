"""Whether the arguments of a tool call keep to the schema the client declared.

Only what can be judged without doubt is a violation: a word of JSON Schema that is not known here,
or a schema that makes no sense, accepts everything.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

MAX_DEPTH: Final = 32  # deeper parts are accepted unseen
MAX_REFERENCES: Final = 16  # one after the other
MAX_CHECKS: Final = 100_000  # a few ms; what is left of a larger document is accepted unseen


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    """1.0 is whole, as in JSON."""
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


TYPES: Final[Mapping[str, Callable[[Any], bool]]] = MappingProxyType(
    {
        "object": lambda value: isinstance(value, dict),
        "array": lambda value: isinstance(value, list),
        "string": lambda value: isinstance(value, str),
        "number": _is_number,
        "integer": _is_whole,
        "boolean": lambda value: isinstance(value, bool),
        "null": lambda value: value is None,
    }
)


def resolved(root: Any, schema: Any) -> Any:
    """What a schema refers to inside of the same document, else the schema itself.

    A place that is not there is None, which accepts everything.
    """
    for _ in range(MAX_REFERENCES):
        place = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(place, str) or not place.startswith("#"):
            break
        schema = root
        for step in place.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            schema = schema.get(name) if isinstance(schema, dict) else None
    return schema


class _Walk:
    """One walk over a value along a schema; counts what it looks at."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = MAX_CHECKS

    def accepts(self, schema: Any, value: Any, depth: int = 0) -> bool:
        """Whether nothing of `value` breaks `schema`."""
        self._left -= 1
        schema = resolved(self._root, schema)
        if not isinstance(schema, dict) or depth > MAX_DEPTH or self._left < 0:
            return schema is not False
        if value is None and schema.get("nullable") is True:
            return True
        return (
            _has_type(schema.get("type"), value)
            and _is_listed(schema, value)
            and _is_within(schema, value)
            and self._keeps_parts(schema, value, depth)
            and self._keeps_choices(schema, value, depth)
        )

    def _keeps_parts(self, schema: Mapping[str, Any], value: Any, depth: int) -> bool:
        if isinstance(value, dict):
            return self._keeps_members(schema, value, depth)
        items = schema.get("items")
        if isinstance(value, list) and isinstance(items, dict):
            return all(self.accepts(items, item, depth + 1) for item in value)
        return True

    def _keeps_members(
        self, schema: Mapping[str, Any], value: Mapping[str, Any], depth: int
    ) -> bool:
        required, properties = schema.get("required"), schema.get("properties")
        if isinstance(required, list) and any(
            isinstance(name, str) and name not in value for name in required
        ):
            return False
        known = properties if isinstance(properties, dict) else {}
        more = schema.get("additionalProperties", True)
        if "patternProperties" in schema:
            more = True
        return all(
            self.accepts(known.get(name, more), member, depth + 1) for name, member in value.items()
        )

    def _keeps_choices(self, schema: Mapping[str, Any], value: Any, depth: int) -> bool:
        every = schema.get("allOf")
        if isinstance(every, list) and not all(self.accepts(s, value, depth + 1) for s in every):
            return False
        return all(
            any(self.accepts(choice, value, depth + 1) for choice in choices)
            for choices in (schema.get("anyOf"), schema.get("oneOf"))
            if isinstance(choices, list) and choices
        )


def accepts(schema: Any, value: Any) -> bool:
    """Whether a decoded JSON value keeps to a schema, as far as that can be told."""
    return _Walk(schema).accepts(schema, value)


def _has_type(wanted: Any, value: Any) -> bool:
    names = wanted if isinstance(wanted, list) else [wanted]
    checks = [TYPES.get(name) if isinstance(name, str) else None for name in names]
    return not checks or any(check is None or check(value) for check in checks)


def _is_listed(schema: Mapping[str, Any], value: Any) -> bool:
    listed = schema.get("enum")
    if isinstance(listed, list) and not any(_same(value, one) for one in listed):
        return False
    return "const" not in schema or _same(value, schema["const"])


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON, where true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _is_within(schema: Mapping[str, Any], value: Any) -> bool:
    low, high, size = "minimum", "maximum", value
    if isinstance(value, str):
        low, high, size = "minLength", "maxLength", len(value)
    elif isinstance(value, list):
        low, high, size = "minItems", "maxItems", len(value)
    elif not _is_number(value):
        return True
    least, most = schema.get(low), schema.get(high)
    least = least if _is_number(least) else -math.inf
    most = most if _is_number(most) else math.inf
    return bool(least <= size <= most)
