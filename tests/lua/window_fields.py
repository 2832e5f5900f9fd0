"""Reads the fields of a window's hash, whose values are several numbers in a text."""

from collections.abc import Mapping
from typing import Final

from cluster_gw.core.limits.windows import DAY_BUCKETS, MINUTE_BUCKETS

NAMES: Final = {
    "i": ("i", "quiet"),
    "m": ("b", "rs", "ts"),
    "h": ("hb", "hrs", "hts"),
    "d": ("d", "de", "dr", "dt"),
}
SLOTS: Final = {"m": ("r", "t", MINUTE_BUCKETS), "h": ("hr", "ht", DAY_BUCKETS)}


def numbers(fields: Mapping[str, str]) -> dict[str, int]:
    """Every number of a window under a name of its own.

    Returns:
        i, quiet; b, rs, ts (minute: newest bucket, sums of requests and tokens), r<slot> and
        t<slot> of buckets that still count; the same with h before it for hours; d, de, dr, dt.
    """
    found: dict[str, int] = {}
    for field, text in fields.items():
        if field in NAMES:
            found |= zip(NAMES[field], map(int, text.split()), strict=True)
    for ring, (requests, tokens, size) in SLOTS.items():
        newest = int(fields[ring].split()[0]) if ring in fields else 0
        for slot in range(size if newest else 0):
            bucket, *counts = map(int, fields.get(f"{ring}{slot}", "0 0 0").split())
            if newest - size < bucket <= newest:
                assert bucket % size == slot
                found[f"{requests}{slot}"], found[f"{tokens}{slot}"] = counts
    return found
