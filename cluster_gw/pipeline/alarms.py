"""Timers that serve one wait after the other: making and cancelling one costs a microsecond.

Nearly every wait of an attempt ends long before its bound. Its timer is then kept running for the
next attempt, whose bound is later; when it rings too early it is only set anew.
"""

import asyncio
from typing import Final, Protocol

RUNG: Final = float("inf")


class Sleeper(Protocol):
    """Who waits for an alarm."""

    def look(self) -> None:
        """See whether it is time."""
        ...


class Alarm:
    """One timer.

    Attributes:
        at_s: loop time at which it rings; infinite once it has.
        sleeper: who is called then; None while it is kept for the next.
    """

    __slots__ = ("at_s", "sleeper")

    def __init__(self, loop: asyncio.AbstractEventLoop, at_s: float, sleeper: Sleeper) -> None:
        self.at_s = at_s
        self.sleeper: Sleeper | None = sleeper
        loop.call_at(at_s, self._ring)

    def _ring(self) -> None:
        self.at_s = RUNG
        if self.sleeper is not None:
            self.sleeper.look()


class Alarms:
    """The alarms of one loop.

    Args:
        loop: the running loop.
    """

    __slots__ = ("_kept", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._kept: list[Alarm] = []

    def take(self, at_s: float, sleeper: Sleeper) -> Alarm:
        """Give an alarm that rings at that time, or before."""
        kept = self._kept
        while kept:
            alarm = kept[-1]
            if alarm.at_s <= at_s:
                kept.pop()
                alarm.sleeper = sleeper
                return alarm
            if alarm.at_s != RUNG:
                break
            kept.pop()
        return Alarm(self.loop, at_s, sleeper)

    def give(self, alarm: Alarm) -> None:
        """Keep an alarm for whoever waits next, unless it has rung."""
        alarm.sleeper = None
        if alarm.at_s != RUNG:
            self._kept.append(alarm)
