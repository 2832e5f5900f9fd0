"""How a target did lately: decayed successes and failures, output speed, time to first byte.

An event counts 2^(-age / 2 days) and is forgotten after seven days. The record in Redis keeps sums
per bucket of six hours, in which each event has the weight it would have at the bucket's start, so
that adding one needs no look at the others. The oldest bucket goes bit by bit. Of a bucket that is
over each sum is kept in 16 bits, within 0.025 %.
"""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from cluster_gw.units import DAY_S, HOUR_S, MS_PER_S

HALF_LIFE_MS: Final = 2 * DAY_S * MS_PER_S
BUCKET_MS: Final = 6 * HOUR_S * MS_PER_S
BUCKETS: Final = 28  # seven days
CODES_PER_E: Final = 2000
CODE_OF_ONE: Final = 1000
CODE_MAX: Final = 65_535
LATENCY_MAX_MS: Final = 120_000  # one call that hung does not outweigh a hundred others


class Result(StrEnum):
    """What the end of an attempt says about reliability and speed."""

    SUCCESS = "s"
    FAILURE = "f"
    TIMEOUT = "t"  # a failure that says something of speed, too


class Sample(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One attempt.

    Attributes:
        result: how it ended.
        output_tokens: what it gave; 0 unless it succeeded.
        latency_ms: from its start to its end.
        first_byte_ms: from its start to the first output of a stream; None when nobody knows.
    """

    result: Result
    output_tokens: int = 0
    latency_ms: int = 0
    first_byte_ms: int | None = None


class Statistics(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Sums of weights, or of weighted values; the default is a target nobody has called.

    Attributes:
        successes: weights.
        failures: weights, those of timeouts included.
        timeouts: weights.
        output_tokens: of successes.
        latency_ms: of successes and timeouts.
        first_byte_ms: of successes that have one, and the latency of timeouts.
        first_bytes: weights of these.
    """

    successes: float = 0.0
    failures: float = 0.0
    timeouts: float = 0.0
    output_tokens: float = 0.0
    latency_ms: float = 0.0
    first_byte_ms: float = 0.0
    first_bytes: float = 0.0

    @property
    def alpha(self) -> float:
        """First parameter of the Beta posterior of reliability, from a uniform prior."""
        return self.successes + 1.0

    @property
    def beta(self) -> float:
        """Its second parameter."""
        return self.failures + 1.0

    @property
    def speed_samples(self) -> float:
        """How many attempts, by weight, the output speed rests on."""
        return self.successes + self.timeouts

    @property
    def tokens_per_s(self) -> float | None:
        """Output speed; None without a sample."""
        return self.output_tokens * MS_PER_S / self.latency_ms if self.latency_ms > 0 else None

    @property
    def mean_latency_ms(self) -> float | None:
        """Time to the whole answer; None without a sample."""
        return self.latency_ms / self.speed_samples if self.speed_samples > 0 else None

    @property
    def mean_first_byte_ms(self) -> float | None:
        """Time to first byte; None without a sample."""
        return self.first_byte_ms / self.first_bytes if self.first_bytes > 0 else None


NO_STATISTICS: Final = Statistics()


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of a target.

    Attributes:
        bucket: the newest bucket, counted from the epoch.
        current: what it holds, in weights at its start.
        older: what the buckets behind it hold that count in full, in weights at its start.
        edge: the same of the oldest bucket, which is on its way out.
    """

    bucket: int
    current: Statistics
    older: Statistics = NO_STATISTICS
    edge: Statistics = NO_STATISTICS


def weight(at_ms: int, reference_ms: int) -> float:
    """Give the weight of an event of `at_ms` as seen at `reference_ms`; above 1 if it is later."""
    return float(2.0 ** ((at_ms - reference_ms) / HALF_LIFE_MS))


def bucket_of(at_ms: int) -> int:
    """Tell the bucket of an instant."""
    return at_ms // BUCKET_MS


SUCCESS: Final = Result.SUCCESS


class Collected(msgspec.Struct, gc=False):
    """The sums of attempts of the same time, in place: there is one for each answer."""

    successes: float = 0.0
    failures: float = 0.0
    timeouts: float = 0.0
    output_tokens: float = 0.0
    latency_ms: float = 0.0
    first_byte_ms: float = 0.0
    first_bytes: float = 0.0

    def note(self, sample: Sample) -> None:
        """Add one attempt, with weight 1."""
        latency_ms = sample.latency_ms
        if not 0 <= latency_ms <= LATENCY_MAX_MS:
            latency_ms = min(max(latency_ms, 0), LATENCY_MAX_MS)
        if sample.result is SUCCESS:
            self.successes += 1.0
            if sample.output_tokens > 0:
                self.output_tokens += sample.output_tokens
            self.latency_ms += latency_ms
            if sample.first_byte_ms is not None:
                self.first_byte_ms += min(max(sample.first_byte_ms, 0), LATENCY_MAX_MS)
                self.first_bytes += 1.0
            return
        self.failures += 1.0
        if sample.result is Result.TIMEOUT:
            self.timeouts += 1.0
            self.latency_ms += latency_ms
            self.first_byte_ms += latency_ms
            self.first_bytes += 1.0

    def sums(self) -> Statistics:
        """What was collected."""
        return Statistics(*msgspec.structs.astuple(self))


def of_sample(sample: Sample) -> Statistics:
    """Give what one attempt adds, with weight 1."""
    collected = Collected()
    collected.note(sample)
    return collected.sums()


def add(one: Statistics, other: Statistics, factor: float = 1.0) -> Statistics:
    """Give `one` and `factor` times `other` together."""
    return Statistics(
        one.successes + factor * other.successes,
        one.failures + factor * other.failures,
        one.timeouts + factor * other.timeouts,
        one.output_tokens + factor * other.output_tokens,
        one.latency_ms + factor * other.latency_ms,
        one.first_byte_ms + factor * other.first_byte_ms,
        one.first_bytes + factor * other.first_bytes,
    )


def values_of(statistics: Statistics) -> tuple[float, ...]:
    """The sums in their declared order."""
    return msgspec.structs.astuple(statistics)


def coded(total: float) -> int:
    """Give a sum of at least 0 as a number of 16 bits; 0 is 0, and what is above 1e14 is lower."""
    if total <= 0:
        return 0
    return min(max(math.floor(math.log(total) * CODES_PER_E + CODE_OF_ONE + 0.5), 1), CODE_MAX)


def decoded(code: int) -> float:
    """Give the sum that `coded` has made `code` of, within 0.025 %."""
    return math.exp((code - CODE_OF_ONE) / CODES_PER_E) if code else 0.0


def roll(buckets: Mapping[int, Statistics], bucket: int) -> Record:
    """Give the record as of the start of `bucket` from all buckets, each in its own weights."""
    start_ms = bucket * BUCKET_MS
    older = edge = NO_STATISTICS
    for one, held in buckets.items():
        age = bucket - one
        if 0 < age < BUCKETS:
            older = add(older, held, weight(one * BUCKET_MS, start_ms))
        elif age == BUCKETS:
            edge = add(edge, held, weight(one * BUCKET_MS, start_ms))
    return Record(bucket=bucket, current=buckets.get(bucket, NO_STATISTICS), older=older, edge=edge)


def statistics_at(record: Record, now_ms: int) -> Statistics:
    """Tell the statistics at `now_ms`, which is in the record's bucket: `roll` it there before.

    What is left of the oldest bucket counts for the part of it that is younger than seven days.
    """
    start_ms = record.bucket * BUCKET_MS
    passed = min(max(now_ms - start_ms, 0), BUCKET_MS)
    whole = add(record.current, record.older)
    return add(
        NO_STATISTICS,
        add(whole, record.edge, 1.0 - passed / BUCKET_MS),
        weight(start_ms, start_ms + passed),
    )
