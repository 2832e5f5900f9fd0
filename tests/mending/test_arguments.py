"""Arguments that are put right, and those that are left alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.mending.arguments import may_hold_text, repaired

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "list": {"type": "array", "items": {"$ref": "#/$defs/point"}},
        "point": {"$ref": "#/$defs/point"},
        "maybe": {"anyOf": [{"type": "array"}, {"type": "null"}]},
        "either": {"type": ["array", "string"]},
        "text": {"type": "string"},
        "any": {},
    },
    "$defs": {
        "point": {"type": "object", "properties": {"tags": {"type": "array"}}, "required": ["tags"]}
    },
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@pytest.mark.parametrize("times", [1, 2])
def test_object_that_was_encoded_again_is_decoded_as_it_was_written(times: int) -> None:
    written = encoded = '{"big": 12345678901234567890123, "a":  1.0}'
    for _ in range(times):
        encoded = json.dumps(encoded)

    assert repaired(encoded, None) == written


@pytest.mark.parametrize(
    ("given_members", "mended"),
    [
        ({"list": '["a"]'}, {"list": ["a"]}),
        ({"maybe": "[]"}, {"maybe": []}),
        ({"point": '{"tags": "[1]"}'}, {"point": {"tags": [1]}}),
        ({"list": ['{"tags": []}', 3]}, {"list": [{"tags": []}, 3]}),
        ({"list": '["{\\"tags\\": \\"[2]\\"}"]'}, {"list": [{"tags": [2]}]}),
    ],
)
def test_arrays_and_objects_that_were_written_as_text_are_read(
    given_members: dict[str, Any], mended: dict[str, Any]
) -> None:
    found = repaired(json.dumps(given_members), SCHEMA)
    twice = repaired(json.dumps(json.dumps(given_members)), SCHEMA)

    assert found is not None
    assert json.loads(found) == mended
    assert twice == found
    assert repaired(found, SCHEMA) is None


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "{}",
        "nonsense",
        '"text"',
        "[1]",
        "null",
        '{"text": "[1]"}',
        '{"either": "[1]"}',
        '{"any": "[1]"}',
        '{"list": "one, two"}',
        '{"list": "{}"}',
        '{"list": "[1"}',
        '{"point": "[1]"}',
        '{"unheard": "[1]"}',
        '{"list": ["[1]"]}',
    ],
)
def test_what_is_right_or_no_such_thing_is_left_alone(arguments: str) -> None:
    assert repaired(arguments, SCHEMA) is None


@given(document=st.dictionaries(st.text(max_size=4), JSON), schema=JSON)
def test_any_schema_leaves_objects_without_text_alone(
    document: dict[str, Any], schema: Any
) -> None:
    assert repaired(json.dumps(document), schema) is None
    may_hold_text(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/a", "a": {"$ref": "#"}},
        {"properties": {"a": {"$ref": "#"}}, "type": "object"},
        {"anyOf": [{"$ref": "#"}] * 9},
        {"properties": 3, "anyOf": 4, "type": 5},
        {"properties": {"a": True}},
    ],
)
def test_schemas_in_circles_come_to_an_end(schema: dict[str, Any]) -> None:
    deep = '{"a":' * 60 + '"{}"' + "}" * 60

    assert repaired(deep, schema) is None or isinstance(repaired(deep, schema), str)
    may_hold_text(schema)


def test_only_schemas_with_arrays_or_objects_may_hold_text() -> None:
    plain = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}

    assert may_hold_text(SCHEMA)
    assert may_hold_text({"$ref": "#/$defs/x", "$defs": {"x": SCHEMA["properties"]["list"]}}) is (
        False
    )
    assert not may_hold_text(plain)
    assert not may_hold_text(None)
