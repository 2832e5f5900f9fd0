"""What a worker did by itself and Redis does not know yet: a bounded list, written when it is back.

A request that has ended is settled under its lease id; one that has not is reserved under it, so
that it counts from then on. Both are idempotent by that id, so either may be repeated (decision
0034).
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from cluster_gw.units import LeaseId

MAX_ENTRIES: Final = 50_000


class Ended(msgspec.Struct, frozen=True, gc=False):
    """A request that was let in here and has ended.

    Attributes:
        part: of Redis that must learn of it.
        at_s: when it was let in, by the worker's own clock.
        settle: queues its settlement, given its age in seconds.
    """

    part: str
    at_s: float
    settle: Callable[[float], None]


class Running(msgspec.Struct, kw_only=True):
    """A request that was let in here and has not ended.

    Attributes:
        ends_at_s: when its lease expires.
        register: reserves it, given the rest of its life in ms.
        is_registered: that was asked for already.
    """

    part: str
    ends_at_s: float
    register: Callable[[int], Awaitable[object]]
    is_registered: bool = False


class Journal:
    """Both kinds, at most `max_entries` together.

    Attributes:
        running: by lease id.
        replayed: settlements written so far.
    """

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self.running: dict[LeaseId, Running] = {}
        self.replayed = 0
        self._max_entries = max_entries
        self._ended: deque[Ended] = deque()

    def __len__(self) -> int:
        return len(self._ended) + len(self.running)

    @property
    def unwritten(self) -> int:
        """Requests that have ended and wait to be written."""
        return len(self._ended)

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be let in: what is not written down may not be done."""
        return len(self) >= self._max_entries

    def parts(self) -> set[str]:
        """The parts that must learn of requests that have ended."""
        return {ended.part for ended in self._ended}

    def add(self, ended: Ended) -> None:
        """Keep a settlement."""
        self._ended.append(ended)

    def settle(self, part: str, now_s: float, most: int) -> int:
        """Queue up to `most` settlements of a part, oldest first; how many there were."""
        count, kept = 0, deque[Ended]()
        while self._ended and count < most:
            ended = self._ended.popleft()
            if ended.part == part:
                ended.settle(now_s - ended.at_s)
                count += 1
            else:
                kept.append(ended)
        self._ended.extendleft(reversed(kept))
        self.replayed += count
        return count

    def unregistered(self, part: str) -> list[Running]:
        """The requests of a part that run and are not known to Redis."""
        return [
            running
            for running in self.running.values()
            if running.part == part and not running.is_registered
        ]
