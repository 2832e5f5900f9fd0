"""Token amounts as people write them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.settings.amounts import parse_amount

UNITS = {"": 1, "k": 10**3, "K": 10**3, "m": 10**6, "M": 10**6, "B": 10**9, "b": 10**9, "T": 10**12}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("15M", 15_000_000), ("1.5B", 1_500_000_000), ("150k", 150_000), ("0", 0), ("2 M", 2_000_000)],
)
def test_written_amounts_mean_what_people_mean(text: str, tokens: int) -> None:
    assert parse_amount(text) == tokens


@pytest.mark.parametrize(
    "text",
    ["", "M", "1.5", "-3k", "1e6", "15 MB", "1.5.5M", "0.0001k", "1_000", "٣k", "15Mio", "1,5M"],
)
def test_other_texts_are_no_amount(text: str) -> None:
    assert parse_amount(text) is None


@given(st.integers(0, 10**9), st.sampled_from(sorted(UNITS)))
def test_a_whole_number_is_scaled_exactly(number: int, unit: str) -> None:
    assert parse_amount(f"{number}{unit}") == number * UNITS[unit]


@given(st.decimals(0, 10**6, places=3), st.sampled_from(["k", "M", "B"]))
def test_a_fraction_is_scaled_without_rounding(number: Decimal, unit: str) -> None:
    assert parse_amount(f"{number:f}{unit}") == number * UNITS[unit]


@given(st.text(max_size=12))
def test_any_text_gives_a_count_or_nothing(text: str) -> None:
    amount = parse_amount(text)

    assert amount is None or amount >= 0
