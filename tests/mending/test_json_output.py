"""JSON that was asked for, in and out of what stands around it."""

import time

import pytest
from msgspec import Raw

from cluster_gw.canonical.conversation import AnswerFormat
from cluster_gw.mending.json_output import healed

ANY = AnswerFormat()
OBJECT = AnswerFormat(schema=Raw(b'{"type":"object"}'))
ARRAY = AnswerFormat(schema=Raw(b'{"type":"array"}'))
UNTOLD = AnswerFormat(schema=Raw(b'{"enum":["a","b"]}'))


@pytest.mark.parametrize("text", ['{"a": 1}', ' {"a":1}\n', "[1]"])
def test_json_is_left_as_it_is(text: str) -> None:
    assert healed(text, ANY) == text


@pytest.mark.parametrize(
    ("text", "wanted", "found"),
    [
        ('```json\n{"a": 1}\n```', ANY, '{"a": 1}'),
        ('```\n{"a": 1}```', OBJECT, '{"a": 1}'),
        ('Sure:\n```json\n{"a": "``"}\n```\nBye', ANY, '{"a": "``"}'),
        ('Here it is: {"a": {"b": "}"}}. Enjoy!', ANY, '{"a": {"b": "}"}}'),
        ('See [1]: {"a": [2]}', ANY, '{"a": [2]}'),
        ("Here: [1, 2]", ANY, "[1, 2]"),
        ('Items: [{"a": 1}]', ARRAY, '[{"a": 1}]'),
        ('\ufeff{"a": 1}', ANY, '{"a": 1}'),
        ('{"a": "```js\\n{}\\n```"} as asked', ANY, '{"a": "```js\\n{}\\n```"}'),
    ],
)
def test_fences_and_prose_are_taken_away(text: str, wanted: AnswerFormat, found: str) -> None:
    assert healed(text, wanted) == found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("I cannot do that.", ANY),
        ('{"a": 1,}', ANY),
        ("{'a': 1}", ANY),
        ('{"a": "cut', ANY),
        ('"text"', ANY),
        ("3", OBJECT),
        ("[1]", OBJECT),
        ('{"a": 1}', ARRAY),
        ("", ANY),
    ],
)
def test_what_holds_no_such_json_is_told(text: str, wanted: AnswerFormat) -> None:
    assert healed(text, wanted) is None


@pytest.mark.parametrize(
    "text", ["```" + "a" * 65_536, "```" + "\n" * 65_536, "``` " * 16_384, "{[" * 32_768]
)
def test_long_texts_take_linear_time(text: str) -> None:
    began_s = time.perf_counter()

    assert healed(text, ANY) is None
    assert time.perf_counter() - began_s < 0.5


def test_schema_that_does_not_say_what_it_wants_takes_any_json() -> None:
    for text in ('"a"', "a", "3", "I say a."):
        assert healed(text, UNTOLD) == text
        assert healed(text, AnswerFormat(schema=Raw(b"no json"))) == text
        assert healed(text, AnswerFormat(schema=Raw(b'{"type":"STRING"}'))) == text
    assert healed('```json\n{"a": 1}\n```', UNTOLD) == '{"a": 1}'


def test_schema_with_properties_wants_an_object() -> None:
    schema = Raw(b'{"properties":{"a":{}}}')

    assert healed("a", AnswerFormat(schema=schema)) is None
