"""Schemas between JSON Schema and Gemini's two forms of it.

`parameters` and `responseSchema` take a part of OpenAPI 3.0; `parametersJsonSchema` and
`responseJsonSchema` take more of JSON Schema, and the vendor answers 400 to words it does not know.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.wire.json_codec import raw, read_any

SILENT: Final = frozenset({"$schema", "$comment"})
"""Words that say nothing of what fits."""

OPENAPI: Final = frozenset(
    {"type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems"}
    | {"properties", "required", "minimum", "maximum", "minLength", "maxLength", "pattern"}
    | {"anyOf", "propertyOrdering", "minProperties", "maxProperties"}
)
JSON_SCHEMA: Final = OPENAPI - {"nullable"} | frozenset(
    {"$id", "$defs", "$ref", "$anchor", "prefixItems", "oneOf", "additionalProperties", "default"}
)
TEXT_FORMATS: Final = frozenset({"enum", "date-time", "date", "time"})
MAPS: Final = frozenset({"properties", "$defs"})
LISTS: Final = frozenset({"anyOf", "oneOf", "prefixItems"})
SINGLES: Final = frozenset({"items", "additionalProperties"})
TYPES: Final = frozenset({"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"})
OLD_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {"definitions": "$defs", "#/definitions/": "#/$defs/"}
)


class Given(msgspec.Struct, frozen=True):
    """A schema as Gemini takes it.

    Attributes:
        schema: None where it says nothing, which the vendor would refuse.
        is_plain: the OpenAPI form holds all of it.
        stripped: words that were left out, each once, in order.
    """

    schema: msgspec.Raw | None
    is_plain: bool
    stripped: tuple[str, ...] = ()


def to_gemini(schema: msgspec.Raw) -> Given:
    """A JSON schema without the words that the vendor refuses."""
    document = read_any(schema)
    if not isinstance(document, dict):
        return Given(None, is_plain=True)
    stripped: dict[str, None] = {}
    kept = cleaned(document, stripped)
    if not kept or (set(kept) <= {"type", "properties"} and not kept.get("properties", {})):
        return Given(None, is_plain=True, stripped=tuple(stripped))
    return Given(raw(kept), is_plain=fits_openapi(kept), stripped=tuple(stripped))


def cleaned(schema: Any, stripped: dict[str, None]) -> Any:
    """A schema with known words only; `stripped` is told the others."""
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for given, value in schema.items():
        word = OLD_NAMES.get(given, given)
        if word == "const":
            found["enum"] = [value]
        elif word == "$ref" and isinstance(value, str):
            found[word] = value.replace("#/definitions/", OLD_NAMES["#/definitions/"])
        elif word not in JSON_SCHEMA:
            if word not in SILENT:
                stripped[word] = None
        elif word in MAPS and isinstance(value, dict):
            found[word] = {name: cleaned(one, stripped) for name, one in value.items()}
        elif word in LISTS and isinstance(value, list):
            found[word] = [cleaned(one, stripped) for one in value]
        elif word in SINGLES:
            found[word] = cleaned(value, stripped)
        else:
            found[word] = value
    return found


def fits_openapi(schema: Any) -> bool:
    """Whether the smaller form holds a schema: its words, one type each, texts in an `enum`."""
    if not isinstance(schema, dict):
        return False
    if not set(schema) <= OPENAPI or not isinstance(schema.get("type", ""), str):
        return False
    values = schema.get("enum", [])
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        return False
    form = schema.get("format", "enum")
    if not isinstance(form, str) or (schema.get("type") == "string" and form not in TEXT_FORMATS):
        return False
    properties, choices = schema.get("properties", {}), schema.get("anyOf", [])
    if not isinstance(properties, dict) or not isinstance(choices, list):
        return False
    inner = [*properties.values(), *choices, *([schema["items"]] if "items" in schema else ())]
    return all(fits_openapi(one) for one in inner)


def from_gemini(schema: msgspec.Raw) -> msgspec.Raw:
    """A schema of the OpenAPI form in the words of JSON Schema."""
    return raw(standard(read_any(schema)))


def standard(schema: Any) -> Any:
    """The same schema with types in small letters, and null as a type of its own."""
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for word, value in schema.items():
        if word == "type" and isinstance(value, str) and value in TYPES:
            found[word] = value.lower()
        elif word in MAPS and isinstance(value, dict):
            found[word] = {name: standard(one) for name, one in value.items()}
        elif word in LISTS and isinstance(value, list):
            found[word] = [standard(one) for one in value]
        elif word in SINGLES:
            found[word] = standard(value)
        elif word not in {"nullable", "propertyOrdering", "example"}:
            found[word] = value
    if schema.get("nullable") is True and isinstance(found.get("type"), str):
        found["type"] = [found["type"], "null"]
    return found
