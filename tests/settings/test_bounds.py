"""Ranges hold what they say, and say what they hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.settings.bounds import Range


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (Range(), ""),
        (Range(1), " of at least 1"),
        (Range(0, above=True), " above 0"),
        (Range(high=5), " of at most 5"),
        (Range(high=5, below=True), " below 5"),
        (Range(1, 10**12), " from 1 to 1000000000000"),
        (Range(0, 1, above=True), " above 0 and at most 1"),
        (Range(0, 1, below=True), " of at least 0 and below 1"),
    ],
)
def test_a_range_describes_itself(bounds: Range, words: str) -> None:
    assert bounds.words() == words


@given(st.integers(-5, 5), st.integers(-5, 5), st.integers(0, 5), st.booleans(), st.booleans())
def test_a_range_holds_what_lies_between_its_bounds(
    value: int, low: int, width: int, above: bool, below: bool
) -> None:
    bounds = Range(low, low + width, above=above, below=below)

    over = value > low if above else value >= low
    under = value < low + width if below else value <= low + width
    assert bounds.holds(value) == (over and under)
