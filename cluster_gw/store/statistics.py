"""Reads the statistics of a target as `lua/admission/tally.lua` writes them."""

import math
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from cluster_gw.core.routing.statistics import (
    BUCKETS,
    NO_STATISTICS,
    Record,
    Statistics,
    bucket_of,
    decoded,
    roll,
    statistics_at,
)
from cluster_gw.store.lane import Reply
from cluster_gw.units import MS_PER_S

FIELDS: Final = ("now", "older", "edge")
"""What says everything about the bucket the record is of."""
PAST: Final = ("p0", "p1", "p2", "p3")
"""What holds the buckets before it one by one, when put together in this order."""
CODES: Final = struct.Struct(">7H")


def read_record(values: Sequence[Reply]) -> Record | None:
    """Read the fields `FIELDS`; None without a record."""
    now, older, edge = values
    if now is None:
        return None
    bucket, current = _read_bucket(now)
    return Record(
        bucket=bucket, current=current, older=_read_sums(older or b""), edge=_read_sums(edge or b"")
    )


def read_month(text: bytes, now_ms: int) -> int:
    """Read the field `month`: tokens of the month (UTC) of `now_ms`; 0 when it is of another."""
    month, tokens = map(int, text.split())
    now = datetime.fromtimestamp(now_ms / MS_PER_S, UTC)
    return tokens if month == now.year * 100 + now.month else 0


def is_present(record: Record, now_ms: int) -> bool:
    """Whether `statistics_at` can tell; otherwise all buckets have to be read."""
    return bucket_of(now_ms) <= record.bucket


def read_whole(now: bytes, past: bytes, now_ms: int) -> Statistics:
    """Work out the statistics at `now_ms`, in any bucket, from `now` and all of `PAST` together.

    Raises:
        ValueError: they are not as the script writes them.
    """
    newest, sums = _read_bucket(now)
    if len(past) % CODES.size or len(past) > BUCKETS * CODES.size:
        raise ValueError("buckets that are over have 14 bytes each, and are not above 28")
    buckets = {
        newest - ago: Statistics(*map(decoded, codes))
        for ago, codes in enumerate(CODES.iter_unpack(past), start=1)
    }
    return statistics_at(roll({**buckets, newest: sums}, bucket_of(now_ms)), now_ms)


def _read_bucket(text: bytes) -> tuple[int, Statistics]:
    bucket, _, sums = text.partition(b" ")
    return int(bucket), _read_sums(sums)


def _read_sums(text: bytes) -> Statistics:
    if not text:
        return NO_STATISTICS
    sums = tuple(map(float, text.split()))
    if not all(0 <= one < math.inf for one in sums):
        raise ValueError("sums of statistics are numbers of at least 0")
    return Statistics(*sums)
