"""Schemas between JSON Schema and Gemini's two forms."""

from typing import Any

import msgspec
import pytest

from cluster_gw.wire.gemini_schema import from_gemini, to_gemini


def given(document: Any) -> tuple[Any, bool, tuple[str, ...]]:
    result = to_gemini(msgspec.Raw(msgspec.json.encode(document)))
    schema = None if result.schema is None else msgspec.json.decode(result.schema)
    return schema, result.is_plain, result.stripped


PLAIN = {
    "type": "object",
    "properties": {
        "a": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
        "$schema": {"type": "string"},
    },
    "required": ["a"],
}


def test_the_subset_of_openapi_is_known_as_such() -> None:
    assert given(PLAIN) == (PLAIN, True, ())


@pytest.mark.parametrize(
    "inner",
    [
        {"type": ["string", "null"]},
        {"type": "integer", "enum": [1]},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"$ref": "#/$defs/a"},
        {"type": "string", "format": "email"},
        {"items": True},
        {"enum": "x"},
        {"anyOf": 5},
        {"properties": []},
    ],
)
def test_what_is_more_than_openapi_needs_the_other_form(inner: Any) -> None:
    document = {"type": "object", "properties": {"a": inner}}

    assert given(document) == (document, False, ())


def test_words_that_the_vendor_refuses_are_left_out_wherever_they_stand() -> None:
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "not": {"const": 1, "not": {}},
            "b": {"anyOf": [{"type": "null", "examples": [1]}, {"$ref": "#/definitions/x"}]},
        },
        "definitions": {"x": {"type": "string", "x-y": 1}},
        "additionalProperties": {"if": {}},
    }

    schema, is_plain, stripped = given(document)

    assert schema == {
        "type": "object",
        "properties": {
            "not": {"enum": [1]},
            "b": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/x"}]},
        },
        "$defs": {"x": {"type": "string"}},
        "additionalProperties": {},
    }
    assert not is_plain
    assert stripped == ("not", "examples", "x-y", "if")


@pytest.mark.parametrize(
    "empty", [{}, {"type": "object", "properties": {}}, True, {"type": "object"}]
)
def test_a_schema_that_says_nothing_is_not_sent(empty: Any) -> None:
    assert given(empty)[0] is None


def test_the_vendors_own_form_becomes_json_schema() -> None:
    document = {
        "type": "OBJECT",
        "nullable": True,
        "propertyOrdering": ["a"],
        "properties": {
            "type": {"type": "STRING", "nullable": True},
            "a": {"anyOf": [{"type": "INTEGER"}], "example": 1},
        },
    }

    found = msgspec.json.decode(from_gemini(msgspec.Raw(msgspec.json.encode(document))))

    assert found == {
        "type": ["object", "null"],
        "properties": {
            "type": {"type": ["string", "null"]},
            "a": {"anyOf": [{"type": "integer"}]},
        },
    }
