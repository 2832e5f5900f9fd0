from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.simulator.sample_text import expected_text, sample_value, split_pieces


@given(st.text())
def test_pieces_joined_are_the_text(text: str) -> None:
    assert "".join(split_pieces(text)) == text


@given(st.text(), st.integers(0, 200))
def test_generated_text_has_as_many_pieces_as_tokens(text: str, tokens: int) -> None:
    assert len(split_pieces(expected_text(text, tokens=tokens))) == tokens


def test_longer_answer_begins_like_the_shorter_one() -> None:
    assert expected_text("q", tokens=50).startswith(expected_text("q", tokens=49))


def test_answer_depends_on_text_seeds_and_choice() -> None:
    answers = {
        expected_text("q", tokens=16),
        expected_text("r", tokens=16),
        expected_text("q", tokens=16, seed=1),
        expected_text("q", tokens=16, request_seed=1),
        expected_text("q", tokens=16, choice=1),
    }
    assert len(answers) == 5


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
