"""Reads and writes the fields of a window's hash: texts of several numbers, or bytes."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from cluster_gw.core.limits.windows import DAY_BUCKETS, MINUTE_BUCKETS

NOW: Final = ("b", "r", "t", "rs", "ts", "period", "ends", "pr", "pt", "i", "quiet")
CALENDAR_MIN: Final = 10_000_000
ANY_BYTES: Final = "surrogateescape"  # some fields are no text
FIELDS: Final = {"s": 9, "d": 4}
WIDTHS: Final = {6: 2, 9: 4, 14: 7}  # bytes of a bucket, and how many are of requests


class Held(NamedTuple):
    """A lease as a window's field has it."""

    state: str
    expiry_ms: int
    worker: str
    second: int
    period: int
    estimate: int
    prompt: int


def fields_of(flat: Sequence[bytes]) -> dict[str, str]:
    """A hash, as HGETALL gives it to a client that decodes nothing."""
    words = [word.decode(errors=ANY_BYTES) for word in flat]
    return dict(zip(words[::2], words[1::2], strict=True))


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
    found |= ring(fields, "s", "", MINUTE_BUCKETS, now["b"])
    slot = now["b"] % MINUTE_BUCKETS
    found[f"r{slot}"], found[f"t{slot}"] = now["r"], now["t"]
    period, requests, tokens = now["period"], now["pr"], now["pt"]
    if period >= CALENDAR_MIN:
        return found | {"d": period, "de": now["ends"], "dr": requests, "dt": tokens}
    assert now["ends"] == (period + 1) * 3_600_000
    hours = ring(fields, "d", "h", DAY_BUCKETS, period)
    slot = period % DAY_BUCKETS
    # What the hour holds that is not over yet is what the others do not.
    hours[f"hr{slot}"] = requests - sum(n for name, n in hours.items() if name[1] == "r")
    hours[f"ht{slot}"] = tokens - sum(n for name, n in hours.items() if name[1] == "t")
    return found | hours | {"hb": period, "hrs": requests, "hts": tokens}


def ring(
    fields: Mapping[str, str], name: str, prefix: str, size: int, newest: int
) -> dict[str, int]:
    """The buckets that are over and still count, each named by its number modulo `size`."""
    found = {}
    for number in range(FIELDS[name]):
        for bucket, (requests, tokens) in eight(fields.get(f"{name}{number}", "")).items():
            assert bucket // 8 % FIELDS[name] == number
            if newest - size < bucket < newest:
                slot = bucket % size
                found[f"{prefix}r{slot}"], found[f"{prefix}t{slot}"] = requests, tokens
    return found


def eight(text: str) -> dict[int, tuple[int, int]]:
    """Requests and tokens of up to eight buckets of one field."""
    data = text.encode(errors=ANY_BYTES)
    if not data:
        return {}
    size, first = data[0], 8 * int.from_bytes(data[1:5], "little")
    of_requests = WIDTHS[size]
    parts = [data[at : at + size] for at in range(5, len(data), size)]
    assert len(parts) <= 8
    assert all(len(part) == size for part in parts)
    return {
        first + place: (
            int.from_bytes(part[:of_requests], "little"),
            int.from_bytes(part[of_requests:], "little"),
        )
        for place, part in enumerate(parts)
    }


def eight_text(buckets: Mapping[int, tuple[int, int]], size: int = 6) -> bytes:
    """The field that holds these, of the same eight; `size` bytes each."""
    first, of_requests = min(buckets) // 8 * 8, WIDTHS[size]
    pairs = [buckets.get(bucket, (0, 0)) for bucket in range(first, max(buckets) + 1)]
    parts = [
        requests.to_bytes(of_requests, "little") + tokens.to_bytes(size - of_requests, "little")
        for requests, tokens in pairs
    ]
    return bytes([size]) + (first // 8).to_bytes(4, "little") + b"".join(parts)
