"""The text of a configuration becomes plain values, or a fault that quotes no line."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.settings.document import MAX_BYTES, read_document
from cluster_gw.settings.faults import Faults


def read(text: str | bytes) -> tuple[dict[str, Any], list[str]]:
    faults = Faults()
    data = text if isinstance(text, bytes) else text.encode()
    return read_document(data, faults), faults.lines


def faults_of(text: str | bytes) -> str:
    return "\n".join(read(text)[1])


def test_scalars_follow_yaml_1_2() -> None:
    text = "a: [on, 'yes', 0123, 1:30, 0x1f, 0o17, 1_000, ~, 1e3, true, null, -4, 2.5]"

    assert read(text) == (
        {"a": ["on", "yes", 123, "1:30", 31, 15, 1000, None, 1000.0, True, None, -4, 2.5]},
        [],
    )


def test_an_empty_file_is_an_empty_mapping() -> None:
    assert read("") == ({}, [])
    assert read("# nothing\n") == ({}, [])


def test_a_byte_order_mark_is_ignored() -> None:
    assert read(b"\xef\xbb\xbfa: 1") == ({"a": 1}, [])


# YAML has no control characters; a configuration needs none.
TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn", "Co"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_json_is_read_like_json(value: dict[str, Any]) -> None:
    assert read(msgspec.json.encode(value)) == (value, [])


def test_json_indented_with_tabs_and_with_surrogate_pairs_is_read() -> None:
    assert read('{\n\t"a":\t"\\ud83d\\ude00 \\/"\n}') == ({"a": "\U0001f600 /"}, [])


@pytest.mark.parametrize(
    "text", ["server:\n  port: 1\n  port: 2\n", '{"server":{"port":1,"port":2}}']
)
def test_a_name_that_stands_twice_is_refused_with_its_path(text: str) -> None:
    assert faults_of(text) == "server.port: stands twice in the same mapping"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: 2026-01-01", "a: dates are not supported; put it in quotes"),
        ("a: !thing 1", "a: tags are not supported"),
        ("a: !thing [1]", "a: tags are not supported"),
        ("a: !!python/object:os.system {}", "a: tags are not supported"),
        ("a: !!binary aGk=", "a: binary values are not supported"),
        ("a: !!set {b}", "a: tags are not supported"),
        ("a: &x {b: 1}\nc: {<<: *x}", "c: merge keys (<<) are not supported"),
        ("? [1]\n: 2", "configuration: a name must be text"),
        ("- 1", "configuration: the file must hold a mapping of sections"),
        ('{"a": "\\ud83d"}', "a: half of a character pair (a lone surrogate)"),
        (b"a: \xff", "configuration: the file is not UTF-8 text"),
    ],
)
def test_what_yaml_can_do_and_we_do_not_take_is_refused(text: str | bytes, fault: str) -> None:
    assert faults_of(text) == fault


def test_a_syntax_fault_tells_the_place_and_not_the_line() -> None:
    fault = faults_of("keys:\n  - {id: a, secret: 'sk-private\n")

    assert "line " in fault
    assert "sk-private" not in fault


def test_several_documents_are_refused() -> None:
    assert "not valid YAML" in faults_of("a: 1\n---\nb: 2\n")


def test_an_alias_stands_for_its_value() -> None:
    assert read("a: &x {b: 1}\nc: *x") == ({"a": {"b": 1}, "c": {"b": 1}}, [])


def test_an_alias_bomb_is_refused_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]

    assert "expands to more than" in faults_of("\n".join(lines))


def test_an_alias_that_holds_itself_is_refused() -> None:
    assert "nested deeper" in faults_of("a: &x [*x]")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "a: " + "{b: " * 5000, "a: " + "[" * 200 + "]" * 200]
)
def test_deep_nesting_is_a_fault_and_no_crash(text: str) -> None:
    assert "nested" in faults_of(text) or "mapping" in faults_of(text) or "YAML" in faults_of(text)


def test_a_file_above_the_bound_is_refused() -> None:
    assert "larger than 4 MB" in faults_of(b"#" * (MAX_BYTES + 1))


@given(st.binary(max_size=60))
def test_any_bytes_give_a_mapping_or_a_fault(data: bytes) -> None:
    faults = Faults()

    assert isinstance(read_document(data, faults), dict)


@given(st.text(alphabet="ab:{}[]-&*!|>'\"#%@\n\t ,?~0", max_size=40))
def test_any_text_gives_a_mapping_or_a_fault(text: str) -> None:
    assert isinstance(read(text)[0], dict)
