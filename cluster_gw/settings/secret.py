"""A value that must never be seen: it can be used, it cannot be printed."""

import hmac
from typing import Any, Final

MASK: Final = "***"


class Secret:
    """Holds a credential; `repr`, `str`, formatting and JSON all give `***`.

    Only `reveal` gives the value, so every place that uses one can be found by that word.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Give the value itself; the caller must not log it, store it or put it in a name."""
        return self._value

    def __repr__(self) -> str:
        return MASK

    def __format__(self, format_spec: str) -> str:
        return MASK

    def __bool__(self) -> bool:
        return self._value != ""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(("secret", self._value))

    def __reduce__(self) -> Any:
        raise TypeError("a secret is not serialised")


def mask_secrets(value: object) -> str:
    """Encode what msgspec cannot: secrets become `***`; for use as an `enc_hook`.

    Raises:
        TypeError: `value` is not a secret, so it is a type nobody meant to print.
    """
    if isinstance(value, Secret):
        return MASK
    raise TypeError(f"{type(value).__name__} cannot be encoded")
