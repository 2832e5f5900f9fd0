"""Counts of tokens as people and vendors write them: `15M`, `1.5B`, `150k`, `~50-100M`."""

import math
import re
from decimal import Decimal
from types import MappingProxyType
from typing import Final

_SCALE: Final = MappingProxyType({"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12})
_AMOUNT: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,12})?)\s?([kKmMbBtT]?)", re.ASCII)
_LABEL: Final = re.compile(
    r"(?:[~\u2248<\u2264]|up to)?\s*(?:(?P<low>[0-9.]{1,15})\s?[kKmMbBtT]?\s*[-\u2013]\s*~?)?"
    r"(?P<high>[0-9]{1,15}(?:\.[0-9]{1,12})?\s?[kKmMbBtT])\+?"
    r"(?:\s*tok(?:en)?s?)?(?:\s*(?:/|per|a)\s*mo(?:nth)?)?",
    re.IGNORECASE,
)


def is_finite(value: float) -> bool:
    """Whether arithmetic can use a number; a whole one above every float (309 digits) is none."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def parse_amount(text: str) -> int | None:
    """Give the whole number a text such as `1.5M` stands for; None when it is not one.

    The units are thousands, not 1024; upper and lower case mean the same. A fraction that leaves
    a part of a token (`1.5`, `0.0001k`) is no amount.
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        return None
    amount = Decimal(match[1]) * _SCALE[match[2].lower()]
    return int(amount) if amount == amount.to_integral_value() else None


def parse_label(text: str) -> int | None:
    """Give the tokens a month that a vendor's label promises at most; None for no opinion.

    Of a range it is the upper bound. A label without a unit or a number, or that tells a rate
    (`60 req/min`, `1M/day`), tells nothing of a month.
    """
    match = _LABEL.fullmatch(text.strip())
    return None if match is None else parse_amount(match["high"])
