"""The JSON door: what it refuses, and that it rewrites without losing or reordering."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.wire import json_codec
from cluster_gw.wire.json_codec import (
    InvalidJsonError,
    JsonReader,
    UnexpectedShapeError,
    UnpairedSurrogateError,
    nests_deeper,
    read_answer_fields,
    read_any,
    read_fields,
    write,
)

NOT_JSON = [
    b"",
    b"{",
    b'{"a":NaN}',
    b'{"a":Infinity}',
    b'{"a":"\\ud800"}',
    b'{"a":1} x',
    b'{"a":"\xff"}',
    b'{"\xff":1}',
    b'{"a":"\xed\xa0\x80"}',
    b'\xef\xbb\xbf{"a":1}',
    b'{"a":' + b"[" * 100_000,
    b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
]


@pytest.mark.parametrize("body", NOT_JSON, ids=range(len(NOT_JSON)))
def test_broken_json_is_refused_cleanly(body: bytes) -> None:
    with pytest.raises(InvalidJsonError):
        read_fields(body)


def test_any_reader_refuses_a_depth_bomb_cleanly() -> None:
    with pytest.raises(InvalidJsonError, match="deeply"):
        read_any(b"[" * 100_000 + b"]" * 100_000)


def test_an_array_is_no_object() -> None:
    with pytest.raises(UnexpectedShapeError) as caught:
        read_fields(b"[1]")

    assert caught.value.path == ""


def test_duplicate_members_collapse_to_the_last() -> None:
    fields = read_fields(b'{"model":"a","x":1,"model":"b"}')

    assert write(fields) == b'{"model":"b","x":1}'


def test_rewriting_keeps_order_and_bytes_of_members() -> None:
    body = b'{"z":1.0e5,"a":[1, 2],"m":{"k" : "\\u00e9"}}'

    assert write(read_fields(body)) == body


@pytest.mark.parametrize(
    ("message", "path", "problem"),
    [
        (
            "Expected `str | array | null`, got `int` - at `$.messages[0].content`",
            "messages[0].content",
            "must be a string or an array or null, not an integer",
        ),
        (
            "Object missing required field `role` - at `$.messages[0]`",
            "messages[0].role",
            "missing",
        ),
        ("Object missing required field `messages`", "messages", "is missing"),
        ("Expected `int` >= 1 - at `$.n`", "n", "must be an integer >= 1"),
        ("Expected `array` of length >= 1 - at `$.messages`", "messages", "of length >= 1"),
        ("Number out of range - at `$.n`", "n", "number out of range"),
        ("Invalid value `x` - at `$.a[0]`", "a[0]", "invalid value"),
    ],
)
def test_shape_errors_are_told_in_the_words_of_json(message: str, path: str, problem: str) -> None:
    error = json_codec.described(message)

    assert error.path == path
    assert problem in error.problem


def test_reader_tells_the_path_of_a_wrong_value() -> None:
    class Inner(msgspec.Struct):
        value: int

    class Outer(msgspec.Struct):
        items: list[Inner]

    with pytest.raises(UnexpectedShapeError) as caught:
        JsonReader[Outer](Outer).read(b'{"items":[{"value":1},{"value":"x"}]}')

    assert caught.value.path == "items[1].value"


def test_lone_surrogates_in_texts_do_not_break_writing() -> None:
    assert write({"a\ud800": ["x\udfff", 1]}) == b'{"a?":["x?",1]}'


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(st.text(), JSON_VALUES, max_size=6))
def test_what_was_written_reads_back_the_same(document: dict[str, object]) -> None:
    body = write(document)

    assert read_any(body) == document
    assert write(read_fields(body)) == body


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=60))
def test_any_bytes_give_fields_or_a_named_error(body: bytes) -> None:
    try:
        fields = read_fields(body)
    except (InvalidJsonError, UnexpectedShapeError):
        return
    assert isinstance(fields, dict)


BEFORE = [b"", b"\\\\", b"\\n", b"\\ud83d\\ude00"]
HALVES = [b"\\ud83d", b"\\uDE00", b"\\ud83d\\uD83d", b"\\ud83d\\u0041", b"\\ud83d\\n"]
AFTER = [b"", b"x", b"\\n", b"\\\\", b"\xc3\xa9", b"long enough for msgspec to see it"]
READERS = [JsonReader(dict[str, str]), json_codec.ANY_READER, json_codec.FIELDS_READER]


@pytest.mark.parametrize("reader", READERS, ids=["typed", "any", "raw"])
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("after", AFTER)
def test_half_a_pair_is_told_from_other_faults_wherever_it_stands(
    reader: JsonReader[dict[str, str]], before: bytes, half: bytes, after: bytes
) -> None:
    for end in (b'"}', b'" }', b'","b":1}'):
        with pytest.raises(UnpairedSurrogateError, match="unpaired surrogate escape"):
            reader.read(b'{"a":"' + before + half + after + end)


@pytest.mark.parametrize(
    "text",
    [
        b"\\ud8",
        b"\\ud83d",
        b"\\ud83d\\ud",
        b"\\ud83d\\ude00",
        b'\\ud83d\\ude00"',
        b'\\\\ud83d"',
        b"\\\\ud83d text",
        b'\\uzzzz"}',
        b'\\u00"}',
    ],
)
def test_json_that_ends_too_early_is_not_taken_for_half_a_pair(text: bytes) -> None:
    for reader in READERS:
        with pytest.raises(InvalidJsonError) as caught:
            reader.read(b'{"a":"' + text)

        assert not isinstance(caught.value, UnpairedSurrogateError)


def test_any_reader_keeps_half_a_pair() -> None:
    assert read_any(b'{"a":["\\ud83d",1.5]}') == {"a": ["\ud83d", 1.5]}


def test_members_of_an_answer_keep_half_a_pair_escaped() -> None:
    fields = read_answer_fields(b'{"a":{"b":"\\ud83d\xc3\xa9"},"c":[1, 1.5],"\\ud83d":0}')

    assert bytes(fields["a"]) == b'{"b":"\\ud83d\\u00e9"}'
    assert write(fields) == b'{"a":{"b":"\\ud83d\\u00e9"},"c":[1,1.5],"?":0}'


@pytest.mark.parametrize(
    "rest", [b"NaN", b"Infinity", b"1e999", b"1 1", b"[" * 100_000 + b"]" * 100_000, b"9" * 5000]
)
def test_half_a_pair_excuses_no_other_fault(rest: bytes) -> None:
    for read in (read_any, read_answer_fields):
        with pytest.raises(InvalidJsonError):
            read(b'{"a":"\\ud83d","b":' + rest + b"}")


def test_a_text_with_half_a_pair_is_no_object() -> None:
    with pytest.raises((InvalidJsonError, UnexpectedShapeError)):
        read_answer_fields(b'["\\ud83d"]')


def depth_of(document: object) -> int:
    """Levels of lists and objects, counted as one would by hand."""
    match document:
        case dict():
            return 1 + max(map(depth_of, document.values()), default=0)
        case list():
            return 1 + max(map(depth_of, document), default=0)
        case _:
            return 0


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=12,
    ),
    st.integers(0, 6),
)
def test_depth_is_that_of_the_deepest_list_or_object(document: object, levels: int) -> None:
    assert nests_deeper(document, levels) == (depth_of(document) > levels)
