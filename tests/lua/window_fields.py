"""Reads the fields of a window's hash, whose values are several numbers in a text."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from cluster_gw.core.limits.windows import DAY_BUCKETS, MINUTE_BUCKETS

NOW: Final = ("b", "r", "t", "rs", "ts", "period", "ends", "pr", "pt", "i", "quiet")
CALENDAR_MIN: Final = 10_000_000


class Held(NamedTuple):
    """A lease as a window's field has it."""

    state: str
    expiry_ms: int
    worker: str
    second: int
    period: int
    estimate: int
    prompt: int


def present(fields: Mapping[str, str]) -> dict[str, int]:
    """The numbers of the field `now`."""
    return dict(zip(NOW, map(int, fields["now"].split()), strict=True))


def leases(fields: Mapping[str, str]) -> dict[str, Held]:
    """The leases of a window, or the holds of a client without their money."""
    found = {}
    for name, text in fields.items():
        if name.startswith("@"):
            state, expiry, worker, *counts = text.split()
            found[name[1:]] = Held(state, int(expiry), worker, *map(int, counts[:4]))
    return found


def numbers(fields: Mapping[str, str]) -> dict[str, int]:
    """Every number of a window under a name of its own.

    Returns:
        i, quiet; b, rs, ts (minute: newest bucket, sums of requests and tokens), r<slot> and
        t<slot> of buckets that still count; the same with h before it for hours; d, de, dr, dt.
    """
    if not fields:
        return {}
    now = present(fields)
    found = {name: now[name] for name in ("i", "quiet", "b", "rs", "ts")}
    found |= ring(fields, "m", "", MINUTE_BUCKETS, now["b"])
    slot = now["b"] % MINUTE_BUCKETS
    found[f"r{slot}"], found[f"t{slot}"] = now["r"], now["t"]
    period, requests, tokens = now["period"], now["pr"], now["pt"]
    if period >= CALENDAR_MIN:
        return found | {"d": period, "de": now["ends"], "dr": requests, "dt": tokens}
    assert now["ends"] == (period + 1) * 3_600_000
    hours = ring(fields, "h", "h", DAY_BUCKETS, period)
    slot = period % DAY_BUCKETS
    # What the hour holds that is not over yet is what the others do not.
    hours[f"hr{slot}"] = requests - sum(n for name, n in hours.items() if name[1] == "r")
    hours[f"ht{slot}"] = tokens - sum(n for name, n in hours.items() if name[1] == "t")
    return found | hours | {"hb": period, "hrs": requests, "hts": tokens}


def ring(
    fields: Mapping[str, str], name: str, prefix: str, size: int, newest: int
) -> dict[str, int]:
    """The buckets that are over and still count."""
    found = {}
    for slot in range(size):
        bucket, requests, tokens = map(int, fields.get(f"{name}{slot}", "0 0 0").split())
        if newest - size < bucket < newest:
            assert bucket % size == slot
            found[f"{prefix}r{slot}"], found[f"{prefix}t{slot}"] = requests, tokens
    return found
