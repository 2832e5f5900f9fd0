"""What a worker may spend by itself while Redis is away: a share of what was left, never more.

Half of what was left, divided by the workers that were alive: so all workers together spend at most
half of it, whatever each of them knows of the others. Only one's own monotonic clock is compared
with itself, so no two clocks have to agree (decision 0033).
"""

from collections import deque
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from cluster_gw.core.limits.windows import MINUTE_BUCKETS

FRESH_S: Final = 60.0
SLOTS_END_S: Final = 3600.0  # as LEASE_MAX_MS in lua/lib/window.lua: no older lease holds a slot
DEAD_AFTER_S: Final = 4.0  # when others take this worker for dead and give its slots away
HALF: Final = 2


class Span(StrEnum):
    """How what was spent of a bound comes back."""

    MINUTE = "minute"  # a minute later
    PERIOD = "period"  # not before Redis is back: a day, or a month
    SLOTS = "slots"  # when the request ends


class Terms(msgspec.Struct, frozen=True, gc=False):
    """What a share is taken of.

    Attributes:
        limit: the bound over all workers, at least 0.
        left: what was left of it when last heard, None when that is not known.
        divisor: what both are divided by, at least 1.
        lost_at_s: when Redis was last there, by the worker's monotonic clock.
    """

    limit: int
    left: int | None
    divisor: int
    lost_at_s: float

    @property
    def of_left(self) -> int:
        """The share of what was left; nothing where that is not known."""
        return 0 if self.left is None else max(0, min(self.left, self.limit)) // self.divisor

    @property
    def of_limit(self) -> int:
        """The share of the whole limit."""
        return self.limit // self.divisor


def divisor_of(workers: int) -> int:
    """What is divided by among `workers`, which count at least as one."""
    return HALF * max(1, workers)


def kept_free(limit: int, workers: int) -> int:
    """What all workers' shares of a limit come to at most, whatever each knows of what was left.

    Args:
        limit: the bound, at least 0.
        workers: how many they are; 0 while that is not known.
    """
    return workers * (limit // divisor_of(workers)) if workers > 0 else limit // HALF


def known_left(limit: int, used: int, at_s: float, lost_at_s: float) -> int | None:
    """What was left of a limit when Redis went away, None if that was heard too long before.

    Args:
        limit: the bound.
        used: of it, as heard.
        at_s: when that was true.
        lost_at_s: when Redis was last there; the same clock.
    """
    return None if lost_at_s - at_s > FRESH_S else max(0, limit - used)


class Purse(Protocol):
    """What this worker spent by itself of one bound of one window."""

    def room(self, terms: Terms, now_s: float) -> int:
        """How much more may be spent now; may be negative."""
        ...

    def take(self, amount: int, now_s: float) -> None:
        """Spend."""
        ...

    def correct(self, difference: int, taken_at_s: float) -> None:
        """Change what was taken at that time by what turned out."""
        ...


class MinutePurse:
    """Spends of the last minute; with the guards of the minute ring (decision 0007).

    What was spent counts here for its minute even when Redis knows of it, which is the safe side.
    For a minute after the loss the share is one of what was left, since what others had taken may
    still count; after that one of the whole limit in any minute.
    """

    __slots__ = ("_buckets", "_total")

    def __init__(self) -> None:
        self._buckets: deque[list[int]] = deque()
        self._total = 0

    def room(self, terms: Terms, now_s: float) -> int:
        """See `Purse`."""
        self._expire(int(now_s))
        is_new = now_s - terms.lost_at_s < MINUTE_BUCKETS
        return (terms.of_left if is_new else terms.of_limit) - self._total

    def take(self, amount: int, now_s: float) -> None:
        """See `Purse`."""
        second = int(now_s)
        if not self._buckets or self._buckets[-1][0] != second:
            self._buckets.append([second, 0])
        self._buckets[-1][1] += amount
        self._total += amount

    def correct(self, difference: int, taken_at_s: float) -> None:
        """See `Purse`."""
        for bucket in reversed(self._buckets):
            if bucket[0] == int(taken_at_s):
                bucket[1] += difference
                self._total += difference
                return

    def wait_s(self, now_s: float) -> float:
        """Seconds until the oldest spend has left, 0 when there is none."""
        self._expire(int(now_s))
        return self._buckets[0][0] + MINUTE_BUCKETS - now_s if self._buckets else 0.0

    def _expire(self, second: int) -> None:
        while self._buckets and self._buckets[0][0] <= second - MINUTE_BUCKETS:
            self._total -= self._buckets.popleft()[1]


class PeriodPurse:
    """Spends since the loss; nothing comes back before Redis does."""

    __slots__ = ("_since_s", "_spent")

    def __init__(self) -> None:
        self._spent = 0
        self._since_s: float | None = None

    def room(self, terms: Terms, now_s: float) -> int:  # noqa: ARG002 - no time makes room here
        """See `Purse`."""
        return terms.of_left - self._spent

    def take(self, amount: int, now_s: float) -> None:
        """See `Purse`."""
        if self._since_s is None:
            self._since_s = now_s
        self._spent += amount

    def correct(self, difference: int, taken_at_s: float) -> None:
        """See `Purse`."""
        if self._since_s is not None and taken_at_s >= self._since_s:
            self._spent += difference

    def forget(self) -> None:
        """Everything taken so far is counted in Redis from now on."""
        self._spent, self._since_s = 0, None


class SlotPurse:
    """Requests in flight: those let in here, and slots that came free here.

    A lease of Redis that this worker had when it was cut off gives it its slot when it ends: nobody
    else can know that it is free. But if the others still reach Redis they take it for dead before
    long and give its slots away (decision 0018); from then on it has its share of the limit.
    """

    __slots__ = ("_freed", "_held")

    def __init__(self) -> None:
        self._held = 0
        self._freed = 0

    def room(self, terms: Terms, now_s: float) -> int:
        """See `Purse`."""
        if now_s - terms.lost_at_s >= SLOTS_END_S:
            return terms.of_limit - self._held
        own = terms.of_left + self._freed
        if now_s - terms.lost_at_s >= DEAD_AFTER_S:
            own = min(own, max(terms.of_left, terms.of_limit))
        return own - self._held

    def take(self, amount: int, now_s: float) -> None:  # noqa: ARG002 - held until it ends
        """See `Purse`."""
        self._held += amount

    def correct(self, difference: int, taken_at_s: float) -> None:  # noqa: ARG002 - as in take
        """See `Purse`; a request that has ended holds none."""
        self._held += difference

    def free(self) -> None:
        """A lease that Redis had counted has ended."""
        self._freed += 1

    def forget(self) -> None:
        """What came free here is known to Redis from now on; what is in flight still ends here."""
        self._freed = 0


def purse_for(span: Span) -> Purse:
    """An empty purse."""
    match span:
        case Span.MINUTE:
            return MinutePurse()
        case Span.PERIOD:
            return PeriodPurse()
        case Span.SLOTS:
            return SlotPurse()
