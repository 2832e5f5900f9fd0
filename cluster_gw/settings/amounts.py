"""Counts of tokens as people write them: `15M`, `1.5B`, `150k`."""

import re
from decimal import Decimal
from types import MappingProxyType
from typing import Final

_SCALE: Final = MappingProxyType({"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12})
_AMOUNT: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,12})?)\s?([kKmMbBtT]?)", re.ASCII)


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
