"""Which lines of a trouble that repeats are written: so many a second, the others are counted.

A trouble is an event and its reason. Redis away or a dead provider would write a line for each
request, thousands a second, that all say the same. The number that was left out is told by the next
line that is let through, or when the trouble is over (decision 0074).
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

PER_S: Final = 10.0
BURST: Final = 100
REST_S: Final = 10.0
"""A trouble of which no line came for so long is over."""
MOST_TROUBLES: Final = 512
"""Troubles that are told apart; beyond that those of one event count as one."""

Trouble = tuple[str, ...]


class Thinned(NamedTuple):
    """What was left out of the log and told by no line yet."""

    event: str
    reason: str
    lines: int


class _Bucket:
    """Lines of one trouble: `due_s` runs ahead of the clock by what was let through."""

    __slots__ = ("due_s", "left_out", "seen_s")

    def __init__(self) -> None:
        self.due_s = self.seen_s = 0.0
        self.left_out = 0


class LineLimit:
    """Limits the lines of each trouble of one process.

    Args:
        monotonic_s: clock.

    Attributes:
        left_out: lines of each event that were left out.
    """

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self.left_out: Counter[str] = Counter()
        self._monotonic_s = monotonic_s
        self._period_s, self._lead_s = 1.0 / PER_S, BURST / PER_S
        self._buckets: dict[Trouble, _Bucket] = {}

    def fit(self, per_s: float, burst: int) -> None:
        """Let through other numbers from now on, as after a while without any.

        Args:
            per_s: lines of each trouble a second, above 0.
            burst: of them at once after a while without any, at least 1.
        """
        period_s, lead_s = 1.0 / per_s, burst / per_s
        if (period_s, lead_s) == (self._period_s, self._lead_s):
            return
        self._period_s, self._lead_s = period_s, lead_s
        for bucket in self._buckets.values():
            bucket.due_s = 0.0

    def ask(self, event: str, *reason: str) -> int | None:
        """Whether a line is written: how many before it were not; None leaves it out too.

        Args:
            event: its name.
            reason: what makes it the same trouble again.
        """
        now_s = self._monotonic_s()
        bucket = self._bucket((event, *reason))
        bucket.seen_s = now_s
        due_s = max(bucket.due_s, now_s) + self._period_s
        if due_s - now_s > self._lead_s + self._period_s / 2:
            bucket.left_out += 1
            self.left_out[event] += 1
            return None
        bucket.due_s = due_s
        left_out, bucket.left_out = bucket.left_out, 0
        return left_out

    def take_over(self, rest_s: float = REST_S) -> Iterator[Thinned]:
        """Tell what was left out of troubles that are over, and forget these.

        Args:
            rest_s: for how long no line of them came.
        """
        if not self._buckets:
            return
        now_s = self._monotonic_s()
        for trouble, bucket in list(self._buckets.items()):
            if now_s - bucket.seen_s < rest_s:
                continue
            if bucket.due_s <= now_s or not rest_s:
                del self._buckets[trouble]
            if bucket.left_out:
                yield Thinned(trouble[0], " ".join(trouble[1:]), bucket.left_out)
                bucket.left_out = 0

    def _bucket(self, trouble: Trouble) -> _Bucket:
        bucket = self._buckets.get(trouble)
        if bucket is None:
            if len(self._buckets) >= MOST_TROUBLES:
                trouble = trouble[:1]
            bucket = self._buckets.setdefault(trouble, _Bucket())
        return bucket
