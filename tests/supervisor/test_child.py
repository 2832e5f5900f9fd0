"""A child is started again with growing pauses; the clock is an argument."""

import signal

from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.supervisor.child import FIRST_PAUSE_S, LONGEST_PAUSE_S, STEADY_S, Child, Exit


class FakeProcess:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None
        self.signals: list[int] = []

    def poll(self) -> int | None:
        return self.code

    def send_signal(self, sig: int) -> None:
        self.signals.append(sig)


class Spawner:
    def __init__(self) -> None:
        self.made: list[FakeProcess] = []
        self.is_refusing = False

    def __call__(self, start: int) -> FakeProcess:
        if self.is_refusing:
            raise OSError("no memory")
        self.made.append(FakeProcess(100 + start))
        return self.made[-1]


def test_a_living_child_needs_nothing() -> None:
    child = Child("c", Spawner())
    child.start(0.0)

    assert child.tend(1.0) is None
    assert (child.pid, child.starts, child.restarts) == (100, 1, 0)


def test_a_dead_child_is_told_once_and_started_after_its_pause() -> None:
    spawner = Spawner()
    child = Child("c", spawner)
    child.start(0.0)
    spawner.made[0].code = -9

    assert child.tend(1.0) == Exit(pid=100, code=-9, lived_s=1.0, restart_in_s=FIRST_PAUSE_S)
    assert child.tend(1.0 + FIRST_PAUSE_S / 2) is None
    assert child.has_ended()
    assert child.tend(1.0 + FIRST_PAUSE_S) is None
    assert (child.pid, child.restarts) == (101, 1)


@given(st.integers(1, 12))
def test_pauses_double_up_to_a_bound(deaths: int) -> None:
    spawner = Spawner()
    child = Child("c", spawner)
    child.start(0.0)
    now_s, pauses = 0.0, []
    for _ in range(deaths):
        spawner.made[-1].code = 1
        ended = child.tend(now_s)
        assert ended is not None
        pauses.append(ended.restart_in_s)
        now_s += ended.restart_in_s
        child.tend(now_s)

    assert pauses == [min(FIRST_PAUSE_S * 2**i, LONGEST_PAUSE_S) for i in range(deaths)]


def test_a_child_that_was_steady_starts_again_at_once() -> None:
    spawner = Spawner()
    child = Child("c", spawner)
    child.start(0.0)
    for at_s in (0.0, 1.0, 2.0):
        spawner.made[-1].code = 1
        child.tend(at_s)
        child.tend(at_s + 0.9)

    spawner.made[-1].code = 1
    ended = child.tend(3.0 + STEADY_S)

    assert ended is not None
    assert ended.restart_in_s == FIRST_PAUSE_S


def test_a_start_that_fails_is_tried_again() -> None:
    spawner = Spawner()
    child = Child("c", spawner)
    child.start(0.0)
    spawner.made[0].code = 1
    child.tend(0.0)
    spawner.is_refusing = True

    assert child.tend(1.0) is None
    spawner.is_refusing = False
    child.tend(2.0)

    assert child.pid == 101


def test_a_retired_child_stays_dead() -> None:
    spawner = Spawner()
    child = Child("c", spawner)
    child.start(0.0)
    spawner.made[0].code = 0
    child.tend(1.0)

    child.retire()
    child.tend(100.0)

    assert child.has_ended()
    assert len(spawner.made) == 1


def test_signals_reach_a_living_child_only() -> None:
    spawner = Spawner()
    child = Child("c", spawner)
    child.signal(signal.SIGTERM)
    child.start(0.0)
    child.signal(signal.SIGHUP)
    spawner.made[0].code = 0
    child.signal(signal.SIGTERM)

    assert spawner.made[0].signals == [signal.SIGHUP]
