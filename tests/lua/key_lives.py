"""How long each key of Redis may live at most, from the table of keys."""

import re
from typing import Final

from cluster_gw.store.key_shapes import KEY_SHAPES

UNITS_MS: Final = {"s": 1000, "min": 60_000, "h": 3_600_000, "day": 86_400_000, "days": 86_400_000}
ARGUMENT_MS: Final = 90 * 86_400_000  # where the caller says how long
PART: Final = re.compile(r"<[^>]+>")


def _pattern(text: str) -> re.Pattern[str]:
    parts = [re.escape(part) for part in PART.split(text)]
    return re.compile(f"[^:]+:{'[^:{}]+?'.join(parts)}")


def _life_ms(text: str) -> int | None:
    count, _, unit = text.partition(" ")
    if text == "none":
        return None
    return ARGUMENT_MS if text == "argument" else int(count) * UNITS_MS[unit]


LIVES: Final = tuple((_pattern(shape.pattern), _life_ms(shape.ttl)) for shape in KEY_SHAPES)


def longest_life_ms(key: str) -> int | None:
    """The longest documented life of a key, with its prefix; None for one that stays.

    Raises:
        LookupError: it is not in the table of keys.
    """
    found = [life for pattern, life in LIVES if pattern.fullmatch(key)]
    if not found:
        raise LookupError(f"{key} is not documented")
    return None if None in found else max(life for life in found if life is not None)
