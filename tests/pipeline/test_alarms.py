"""Alarms are set seldom, ring for whoever waits now, and never later than asked."""

import asyncio
import heapq
from collections.abc import Callable
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.pipeline.alarms import Alarm, Alarms


class Time:
    """A loop whose clock a test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.made = 0
        self._due: list[tuple[float, int, Callable[[], None]]] = []

    def call_at(self, at_s: float, callback: Callable[[], None]) -> None:
        self.made += 1
        heapq.heappush(self._due, (at_s, self.made, callback))

    def pass_to(self, at_s: float) -> None:
        while self._due and self._due[0][0] <= at_s:
            self.now_s, _, callback = heapq.heappop(self._due)
            callback()
        self.now_s = at_s

    def alarms(self) -> Alarms:
        return Alarms(cast("asyncio.AbstractEventLoop", self))


class Waiter:
    """Waits until a moment, however often it is called before."""

    def __init__(self, time: Time, alarms: Alarms, due_s: float) -> None:
        self.time, self.alarms, self.due_s = time, alarms, due_s
        self.woken_s: float | None = None
        self.alarm: Alarm | None = alarms.take(due_s, self)

    def look(self) -> None:
        self.alarm = None
        if self.time.now_s < self.due_s:
            self.alarm = self.alarms.take(self.due_s, self)
        else:
            self.woken_s = self.time.now_s

    def leave(self) -> None:
        if self.alarm is not None:
            self.alarms.give(self.alarm)
            self.alarm = None


def test_a_thousand_waits_one_after_the_other_set_one_alarm_a_minute() -> None:
    time = Time()
    alarms = time.alarms()
    for second in range(1000):
        waiter = Waiter(time, alarms, second + 60.0)
        waiter.leave()
        time.pass_to(second + 1.0)

    assert time.made <= 1000 // 60 + 2


def test_an_alarm_that_is_kept_calls_nobody() -> None:
    time = Time()
    waiter = Waiter(time, time.alarms(), 5.0)
    waiter.leave()
    time.pass_to(10.0)

    assert waiter.woken_s is None


@given(
    st.lists(
        st.tuples(
            st.floats(0.0, 20.0),  # passes before it comes
            st.floats(0.0, 100.0),  # how long it would wait
            st.floats(0.0, 120.0),  # when it leaves
        ),
        max_size=30,
    )
)
def test_each_wait_ends_at_its_bound_unless_it_was_left_before(
    waits: list[tuple[float, float, float]],
) -> None:
    time = Time()
    alarms = time.alarms()
    waiters: list[tuple[Waiter, float]] = []
    leaving: list[tuple[float, int]] = []

    def pass_to(at_s: float) -> None:
        while leaving and leaving[0][0] <= at_s:
            leave_s, place = heapq.heappop(leaving)
            time.pass_to(leave_s)
            waiters[place][0].leave()
        time.pass_to(at_s)

    for gap_s, wait_s, stay_s in waits:
        pass_to(time.now_s + gap_s)
        heapq.heappush(leaving, (time.now_s + stay_s, len(waiters)))
        waiters.append((Waiter(time, alarms, time.now_s + wait_s), time.now_s + stay_s))
    pass_to(10_000.0)

    for waiter, leaves_s in waiters:
        expected = waiter.due_s if waiter.due_s <= leaves_s else None
        assert waiter.woken_s == expected
