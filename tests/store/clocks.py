"""Clocks that tests own: the server's, as scripts get it, and a worker's own."""

import time

NOW_MS = 1_795_000_000_000


class SharedClock:
    """Time that passes for the server and all workers alike, unless a test sets one apart."""

    def __init__(self) -> None:
        self.server_step_ms = 0
        self._passed_ms = 0

    def pass_s(self, seconds: float) -> None:
        self._passed_ms += round(seconds * 1000)

    def server_now_ms(self) -> int:
        return NOW_MS + self._passed_ms + self.server_step_ms

    def monotonic_s(self) -> float:
        return self._passed_ms / 1000


class ManualClock:
    """Wall clock and monotonic clock of the worker under test; the server has its own."""

    def __init__(self) -> None:
        self.offset_ms = 0
        self.passed_s = 0.0

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.offset_ms

    def monotonic_s(self) -> float:
        return self.passed_s


class RealClock(SharedClock):
    """The server's own time, and this process's: for tests of several processes."""

    def server_now_ms(self) -> int:
        return 0

    def monotonic_s(self) -> float:
        return time.monotonic()
