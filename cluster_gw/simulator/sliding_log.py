"""The simulator's own judge of limits: exact logs of what happened when, no buckets.

Deliberately unlike the gateway's counting, so that one proves the other. Knows nothing of HTTP;
the clock is an argument everywhere (monotonic seconds).
"""

from collections import deque
from typing import Final

KEPT_WINDOWS: Final = 2
COMPACT_AFTER_WINDOWS: Final = 4


class LogEntry:
    """One amount at one instant; it may still grow while its answer is being written."""

    __slots__ = ("amount", "at_s", "is_inside")

    def __init__(self, at_s: float, amount: int) -> None:
        self.at_s = at_s
        self.amount = amount
        self.is_inside = True


class SlidingLog:
    """Sum of the amounts of the last `window_s` seconds; an entry of exactly that age is out."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._entries: deque[LogEntry] = deque()
        self._total = 0
        self.peak = 0
        """Highest total right after an entry was added: exact for amounts that do not grow."""

    def add(self, now_s: float, amount: int) -> LogEntry:
        """Record an amount at this instant."""
        entry = LogEntry(now_s, amount)
        self._entries.append(entry)
        self._total += amount
        self.peak = max(self.peak, self.total(now_s))
        return entry

    def grow(self, entry: LogEntry, amount: int) -> None:
        """Change an entry of this log by `amount`, at the instant at which it was recorded."""
        entry.amount += amount
        if entry.is_inside:
            self._total += amount

    def total(self, now_s: float) -> int:
        """Sum of the window that ends now."""
        edge_s = now_s - self._window_s
        while self._entries and self._entries[0].at_s <= edge_s:
            old = self._entries.popleft()
            old.is_inside = False
            self._total -= old.amount
        return self._total

    def wait_s(self, now_s: float, limit: int) -> float:
        """Seconds until the total is below `limit`, if nothing more is added."""
        total = self.total(now_s)
        for entry in self._entries:
            if total < limit:
                break
            total -= entry.amount
            left_s = entry.at_s + self._window_s - now_s
            if total < limit:
                return left_s
        return 0.0 if total < limit else self._window_s


class PeakHistory:
    """Largest sum any window held, for entries that grow after they were recorded.

    Entries are kept for two to four windows; what an answer adds later than that is not seen.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._entries: deque[LogEntry] = deque()
        self._past_peak = 0

    def follow(self, entry: LogEntry) -> None:
        """Watch one more entry; instants must not decrease."""
        self._entries.append(entry)
        age_s = entry.at_s - self._entries[0].at_s
        if age_s > COMPACT_AFTER_WINDOWS * self._window_s:
            self._past_peak = self.peak()
            oldest_s = entry.at_s - KEPT_WINDOWS * self._window_s
            while self._entries[0].at_s < oldest_s:
                self._entries.popleft()

    def peak(self) -> int:
        """Largest sum of amounts within any window, from the start until now."""
        best, total = self._past_peak, 0
        inside: deque[LogEntry] = deque()
        for entry in self._entries:
            inside.append(entry)
            total += entry.amount
            while inside[0].at_s <= entry.at_s - self._window_s:
                total -= inside.popleft().amount
            best = max(best, total)
        return best
