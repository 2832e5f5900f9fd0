from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cluster_gw.core.outcome.tool_schema import MAX_CHECKS, accepts

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "unit": {"enum": ["c", "f"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "note": {"type": ["string", "null"]},
        "at": {"anyOf": [{"type": "number"}, {"type": "string"}]},
    },
    "required": ["city"],
    "additionalProperties": False,
}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)
KIND_OF = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}


def schema_of(value: Any) -> dict[str, Any]:
    """The narrowest schema of a value in the words that are known."""
    kind = KIND_OF.get(type(value), "number")
    schema: dict[str, Any] = {"type": kind, "const": value}
    if isinstance(value, dict):
        schema["properties"] = {name: schema_of(member) for name, member in value.items()}
        schema |= {"required": list(value), "additionalProperties": False}
    elif isinstance(value, list):
        schema["items"] = {"anyOf": [schema_of(item) for item in value]}
        schema |= {"minItems": len(value), "maxItems": len(value)}
    return schema


@pytest.mark.parametrize(
    ("value", "is_sound"),
    [
        ({"city": "Ulm"}, True),
        ({"city": "Ulm", "days": 3, "unit": "c", "tags": ["a"], "note": None, "at": "now"}, True),
        ({"city": "Ulm", "days": 3.0}, True),
        ({}, False),
        ([], False),
        ("Ulm", False),
        ({"city": ""}, False),
        ({"city": 1}, False),
        ({"city": "Ulm", "days": 0}, False),
        ({"city": "Ulm", "days": 8}, False),
        ({"city": "Ulm", "days": 2.5}, False),
        ({"city": "Ulm", "days": True}, False),
        ({"city": "Ulm", "days": 10**400}, False),
        ({"city": "Ulm", "unit": "k"}, False),
        ({"city": "Ulm", "tags": ["a", 1]}, False),
        ({"city": "Ulm", "tags": ["a", "b", "c"]}, False),
        ({"city": "Ulm", "note": 1}, False),
        ({"city": "Ulm", "at": []}, False),
        ({"city": "Ulm", "country": "de"}, False),
    ],
)
def test_a_clear_violation_is_found_and_nothing_else(value: Any, is_sound: bool) -> None:
    assert accepts(WEATHER, value) is is_sound


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "date"},
        {"type": []},
        {"type": 7},
        {"type": [{}]},
        {"required": "city"},
        {"required": [1]},
        {"properties": []},
        {"items": 3},
        {"enum": {}},
        {"anyOf": []},
        {"anyOf": {}},
        {"minimum": "x"},
        {"$ref": "#/nowhere"},
        {"patternProperties": {"^x": {}}, "additionalProperties": False},
        True,
        None,
        "object",
    ],
)
def test_schema_that_makes_no_sense_accepts_everything(schema: Any) -> None:
    for value in (None, True, 1, "x", [1], {"x": 1}):
        assert accepts(schema, value)


@given(schema=ANY_JSON, value=ANY_JSON)
@example(schema={"type": "integer"}, value=10**400)
def test_any_schema_gives_an_answer_for_any_value(schema: Any, value: Any) -> None:
    assert accepts(schema, value) in (True, False)


@given(value=ANY_JSON)
def test_value_keeps_to_the_narrowest_schema_of_itself(value: Any) -> None:
    assert accepts(schema_of(value), value)


@given(value=ANY_JSON, other=ANY_JSON)
def test_value_of_another_type_breaks_that_schema(value: Any, other: Any) -> None:
    kind, kind_of_other = (KIND_OF.get(type(one), "number") for one in (value, other))

    assert kind == kind_of_other or not accepts(schema_of(value), other)


def test_all_of_must_hold_and_null_may_be_allowed() -> None:
    assert not accepts({"allOf": [{"type": "number"}, {"minimum": 5}]}, 4)
    assert accepts({"type": "string", "nullable": True}, None)


def test_deep_and_endless_documents_end() -> None:
    deep: Any = {"type": "array"}
    value: Any = 1
    for _ in range(200):
        deep, value = {"type": "array", "items": deep}, [value]
    wide = {"anyOf": [{"allOf": [{"type": "string"}] * 50}] * 50}

    assert accepts(deep, value)
    assert accepts({"items": {"type": "number"}}, [1] * (MAX_CHECKS + 10) + ["unseen"])
    assert accepts({"items": wide}, [1] * 1000) in (True, False)


@pytest.mark.parametrize(
    ("value", "is_sound"),
    [({"at": {"city": "Ulm"}}, True), ({"at": {}}, False), ({"next": {"at": {}}}, False)],
)
def test_references_inside_of_a_schema_are_followed(value: Any, is_sound: bool) -> None:
    schema = {
        "properties": {"at": {"$ref": "#/$defs/a~1b"}, "next": {"$ref": "#"}},
        "$defs": {"a/b": WEATHER},
    }

    assert accepts(schema, value) is is_sound


@pytest.mark.parametrize("place", ["#/nowhere", "other.json", "#/$ref", 3])
def test_reference_that_leads_nowhere_accepts_everything(place: Any) -> None:
    assert accepts({"$ref": place}, {"a": 1})
