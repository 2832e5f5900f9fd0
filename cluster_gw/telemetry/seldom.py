"""Losses that come again and again: the first of a minute are logged one by one, the rest counted.

A loss is an event and its return another. What flaps many times a second must stay loud without
filling the log; a return is logged if, and only if, its loss was.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

EACH_S: Final = 60.0
MOST: Final = 5  # a rolling restart of the servers of a cluster, and one to spare


class Seldom:
    """Tells which losses of one thing are logged.

    Args:
        monotonic_s: clock.
        most: how many losses are logged one by one in a minute, at least 1.
    """

    def __init__(self, monotonic_s: Callable[[], float], most: int = MOST) -> None:
        self._monotonic_s = monotonic_s
        self._told: deque[float] = deque(maxlen=most)
        self._is_told = False
        self._untold = 0

    def may_tell_loss(self) -> bool:
        """Whether a loss that happens now is logged; else it is counted."""
        now_s, told = self._monotonic_s(), self._told
        self._is_told = len(told) < (told.maxlen or 0) or now_s - told[0] >= EACH_S
        if self._is_told:
            told.append(now_s)
        else:
            self._untold += 1
        return self._is_told

    def may_tell_return(self) -> bool:
        """Whether the return from the last loss is logged: that loss was."""
        return self._is_told

    def take_untold(self) -> int:
        """How many losses were counted instead of logged since the last call."""
        untold, self._untold = self._untold, 0
        return untold
