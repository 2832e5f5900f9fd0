"""What differs between a thing that was read and what is sent back."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.server.admin.read_only import ReadOnly, changed_only, difference, is_same
from cluster_gw.settings.patches import merged

VALUES = st.none() | st.booleans() | st.integers(0, 2) | st.floats(0, 2) | st.sampled_from("ab")
LISTS = VALUES | st.lists(VALUES, max_size=2)
INNER = st.fixed_dictionaries({"x": LISTS, "y": LISTS})
DOCUMENT = st.fixed_dictionaries(
    {"plain": LISTS, "section": INNER, "weights": st.dictionaries(st.sampled_from("xyz"), VALUES)}
)


@given(before=DOCUMENT, sent=DOCUMENT)
def test_difference_put_over_what_held_is_what_was_sent(
    before: dict[str, Any], sent: dict[str, Any]
) -> None:
    assert is_same(merged(before, difference(sent, before)), sent)


@given(DOCUMENT)
def test_what_is_the_same_differs_in_nothing(document: dict[str, Any]) -> None:
    assert difference(document, document) == {}


@given(before=DOCUMENT, sent=DOCUMENT, missing=st.sampled_from(["plain", "section", "weights"]))
def test_body_that_names_less_is_taken_as_it_is(
    before: dict[str, Any], sent: dict[str, Any], missing: str
) -> None:
    del sent[missing]

    assert changed_only(sent, before, ReadOnly()) == sent
    assert changed_only(sent, before, ReadOnly(measured=frozenset({missing}))) == difference(
        sent, before
    )


def test_numbers_of_two_kinds_are_the_same_and_truth_is_no_number() -> None:
    assert is_same({"a": [1]}, {"a": [1.0]})
    assert not is_same({"a": [1]}, {"a": [True]})
    assert not is_same(0, False)
    assert not is_same([1], [1, 1])
    assert not is_same({}, {"a": None})
