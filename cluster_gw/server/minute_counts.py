"""Counts by name in fixed windows of a minute, within one process and a bounded memory."""

from collections.abc import Callable
from typing import Final

from cluster_gw.units import MINUTE_S

REST: Final = "the rest"


class MinuteCounts:
    """Counts from 1 for each name, anew each minute.

    Args:
        monotonic_s: clock of the windows.
        apart: names that are counted apart; all others count together.
    """

    def __init__(self, monotonic_s: Callable[[], float], *, apart: int) -> None:
        self._monotonic_s = monotonic_s
        self._apart = apart
        self._counts: dict[str, int] = {}
        self._ends_s = 0.0

    def __len__(self) -> int:
        return len(self._counts)

    def count(self, name: str) -> tuple[int, float]:
        """Count one; how many there were in this window, and for how many seconds it goes on."""
        now_s = self._monotonic_s()
        if now_s >= self._ends_s:
            self._counts, self._ends_s = {}, now_s + MINUTE_S
        if len(self._counts) >= self._apart and name not in self._counts:
            name = REST
        self._counts[name] = self._counts.get(name, 0) + 1
        return self._counts[name], self._ends_s - now_s
