"""One timer for all phases of an attempt: cancels the task that works when a bound passes.

A phase bound (headers, idle, stall) moves often, a cap (client deadline, total, time budget)
seldom; the nearest of both counts. Moving a bound later costs an assignment: when the alarm rings
it is looked whether the bound has moved, instead of setting one anew for each chunk of a stream.
"""

import asyncio
from types import TracebackType
from typing import Final, Self

from cluster_gw.canonical.failure import FaultKind
from cluster_gw.pipeline.alarms import Alarm, Alarms

NEVER_S: Final = float("inf")
# By a name of a module a member is found ten times sooner than in its class.
DEADLINE: Final = FaultKind.DEADLINE
CONNECT_TIMEOUT: Final = FaultKind.CONNECT_TIMEOUT
HEADERS_TIMEOUT: Final = FaultKind.HEADERS_TIMEOUT
STALL: Final = FaultKind.STALL


class Watchdog:
    """Guards awaits of the current task: `with dog: await …`, then ask `dog.fired`.

    Args:
        alarms: of the running loop, whose clock is the clock of all bounds, in seconds.
    """

    __slots__ = (
        "_alarm",
        "_alarms",
        "_armed_s",
        "_cap_kind",
        "_cap_s",
        "_kind",
        "_limit_s",
        "_outer_cancels",
        "_task",
        "fired",
    )

    def __init__(self, alarms: Alarms) -> None:
        self._alarms = alarms
        self._task: asyncio.Task[object] | None = None
        self._alarm: Alarm | None = None
        self._armed_s = NEVER_S
        self._limit_s = self._cap_s = NEVER_S
        self._kind = self._cap_kind = DEADLINE
        self._outer_cancels = 0
        self.fired: FaultKind | None = None

    def limit(self, at_s: float, kind: FaultKind) -> None:
        """Set the bound of the present phase, replacing the last one."""
        self._limit_s = at_s
        self._kind = kind
        if at_s < self._armed_s and self._task is not None:
            self._arm()

    def cap(self, at_s: float, kind: FaultKind) -> None:
        """Set the bound that holds whatever the phase."""
        self._cap_s = at_s
        self._cap_kind = kind
        if at_s < self._armed_s and self._task is not None:
            self._arm()

    def __enter__(self) -> Self:
        self._task = asyncio.current_task(self._alarms.loop)
        self._outer_cancels = self._task.cancelling() if self._task else 0
        self.fired = None
        self._arm()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> bool:
        task, self._task = self._task, None
        if self._alarm is not None:
            self._alarms.give(self._alarm)
            self._alarm = None
        self._armed_s = NEVER_S
        if self.fired is None or task is None:
            return False
        # Our own cancellation is taken back; one from elsewhere (client gone, shutdown) goes on.
        return task.uncancel() <= self._outer_cancels and kind is asyncio.CancelledError

    def _arm(self) -> None:
        due_s = min(self._cap_s, self._limit_s)
        if due_s >= self._armed_s:
            return
        if self._alarm is not None:
            self._alarms.give(self._alarm)
        self._alarm = alarm = self._alarms.take(due_s, self)
        self._armed_s = alarm.at_s

    def look(self) -> None:
        """End the wait if its bound has passed; called when the alarm rings."""
        self._alarm, self._armed_s = None, NEVER_S
        due_s = min(self._limit_s, self._cap_s)
        if self._alarms.loop.time() < due_s:
            self._arm()
            return
        self.fired = self._cap_kind if self._cap_s <= self._limit_s else self._kind
        if self._task is not None:
            self._task.cancel()
