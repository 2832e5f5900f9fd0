from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.simulator.schema_sample import sample_value

KEYWORDS = ("type", "properties", "items", "anyOf", "enum", "required", "minItems", "minLength")
nonsense = st.recursive(
    st.none() | st.integers() | st.sampled_from(["object", "array", "string", "#", "#/a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYWORDS, "$ref", "a"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*KEYWORDS, "$ref", "a"]), nonsense, max_size=5))
def test_no_schema_is_too_strange(schema: dict[str, Any]) -> None:
    sample_value(schema, "w")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1),
        ({"type": "number", "minimum": 5}, 5),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"type": ["string", "null"], "minLength": 4}, "wxxx"),
        ({"type": "string", "maxLength": 0}, ""),
        ({"enum": ["x", "y"]}, "x"),
        ({"const": 9}, 9),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"properties": {"a": {"type": "string"}}}, {"a": "w"}),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "boolean"}}}, True),
        ({"$ref": "#/$defs/gone"}, "w"),
    ],
)
def test_sample_obeys_its_schema(schema: dict[str, Any], value: Any) -> None:
    assert sample_value(schema, "w") == value


def test_schema_that_contains_itself_ends() -> None:
    node: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#"}}}

    assert "next" in sample_value(node, "w")


def test_schema_that_is_only_itself_ends() -> None:
    assert sample_value({"$ref": "#"}, "w") == "w"


def test_choice_that_is_only_itself_ends() -> None:
    assert sample_value({"anyOf": [{"$ref": "#"}]}, "w") == "w"
