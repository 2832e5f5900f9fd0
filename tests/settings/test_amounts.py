"""Token amounts as people write them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.settings.amounts import parse_amount, parse_label

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


@pytest.mark.parametrize(
    ("label", "tokens"),
    [
        ("~15M", 15_000_000),
        ("~50-100M", 100_000_000),
        ("50M - 100M", 100_000_000),
        ("800K-1M", 1_000_000),
        ("≈ 1.5B", 1_500_000_000),
        ("up to 3M tokens/month", 3_000_000),
        ("30m tok/mo", 30_000_000),
        ("10M+", 10_000_000),
        ("1M per month", 1_000_000),
        ("0M", 0),
    ],
)
def test_label_of_a_vendor_promises_its_upper_bound(label: str, tokens: int) -> None:
    assert parse_label(label) == tokens


@pytest.mark.parametrize(
    "label",
    [
        *("", "~15", "50-100", "M", "unlimited", "varies", "60 req/min", "1M/day", "30 rpm"),
        *("40K tokens/min", "15 MB", "1M per hour", "10-20", "5M-ish", "~1..5M"),
    ],
)
def test_label_without_a_unit_a_number_or_with_a_rate_is_no_opinion(label: str) -> None:
    assert parse_label(label) is None


@given(st.text(max_size=16))
def test_any_label_gives_a_count_or_no_opinion(text: str) -> None:
    tokens = parse_label(text)

    assert tokens is None or tokens >= 0
