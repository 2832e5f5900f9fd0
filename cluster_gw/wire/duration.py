"""Reads how vendors write a length of time: `1m30.5s`, `17s`, `2 minutes`, a number, an instant."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from cluster_gw.units import DAY_S, HOUR_S, MINUTE_S, MS_PER_S

EPOCH_MS_FROM: Final = 1e12
EPOCH_S_FROM: Final = 1e9

HTTP_DATES: Final = (
    "%a, %d %b %Y %H:%M:%S GMT",
    "%A, %d-%b-%y %H:%M:%S GMT",
    "%a %b %d %H:%M:%S %Y",
)

NUMBER: Final = r"(\d{1,15}(?:\.\d{1,9})?)"
UNIT: Final = (
    r"(milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])"
)
PART: Final = re.compile(rf"{NUMBER}\s*{UNIT}", re.IGNORECASE)
# A glued `1m30s` has no boundary after its first unit, so a digit may follow it.
DURATION: Final = rf"(?:{NUMBER}\s*{UNIT}[\s,]*(?:and\s+)?)+"
WHOLE: Final = re.compile(rf"\s*{DURATION}\s*", re.IGNORECASE)

UNIT_MS: Final[Mapping[str, int]] = {
    "ms": 1,
    "s": MS_PER_S,
    "m": MINUTE_S * MS_PER_S,
    "h": HOUR_S * MS_PER_S,
    "d": DAY_S * MS_PER_S,
}


def parse_number(text: str) -> float | None:
    """A plain non-negative decimal number, None for anything else."""
    return float(text) if re.fullmatch(NUMBER, text.strip()) else None


def parse_duration_ms(text: str) -> int | None:
    """Milliseconds of a text that is nothing but a duration with units, else None."""
    if not WHOLE.fullmatch(text):
        return None
    return sum_parts_ms(text)


def sum_parts_ms(text: str) -> int:
    """Milliseconds of all parts with units in a text."""
    return round(sum(float(n) * UNIT_MS[short_unit(unit)] for n, unit in PART.findall(text)))


def short_unit(unit: str) -> str:
    """`ms`, `s`, `m`, `h` or `d` for any spelling `UNIT` matches."""
    lower = unit.lower()
    return "ms" if lower.startswith(("ms", "milli")) else lower[0]


def until_ms(number: float, now_ms: int) -> int:
    """Milliseconds from now: an epoch in ms or s by its size, else seconds."""
    if number >= EPOCH_MS_FROM:
        return round(number) - now_ms
    if number >= EPOCH_S_FROM:
        return round(number * MS_PER_S) - now_ms
    return round(number * MS_PER_S)


def parse_instant_ms(text: str) -> int | None:
    """Milliseconds since the epoch of an HTTP date (RFC 9110 5.6.7) or an RFC 3339 time."""
    for pattern in HTTP_DATES:
        try:
            parsed = datetime.strptime(text.strip(), pattern).replace(tzinfo=UTC)
        except ValueError:
            continue
        return round(parsed.timestamp() * MS_PER_S)
    return parse_rfc3339_ms(text.strip())


def parse_rfc3339_ms(text: str) -> int | None:
    """Milliseconds since the epoch of an RFC 3339 time with a zone, else None."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    if parsed.tzinfo is None:
        return None
    return round(parsed.timestamp() * MS_PER_S)
