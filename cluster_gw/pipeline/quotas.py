"""Looks at what providers say of their limits, seldom enough not to be felt.

An answer's headers are read at most once a second for each target, after the answer went on its
way, and sent on only when they leave less than we know of. A provider that says nothing is asked to
every minute.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from cluster_gw.canonical.quota import Observation, QuotaKind, QuotaWindow
from cluster_gw.errors import StoreLostError
from cluster_gw.pipeline.attempt import Attempt
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.errands import Errands
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.admission import Lease
from cluster_gw.store.lease import TargetLimits
from cluster_gw.store.observing import Observing, Seen
from cluster_gw.units import MS_PER_S

EVERY_S: Final = 1.0
SILENT_S: Final = 60.0  # between looks at a provider that says nothing of its limits
DAY_EVERY_S: Final = 5.0  # of a day's limit, where nothing but the provider tells what is left
MAX_RUNNING: Final = 16
MAX_ENTRIES: Final = 10_000
NO_LIMIT: Final = -1

OnSeen = Callable[[Target, Seen], None]


class Quotas:
    """Reads headers of answers and applies them to our counters.

    Args:
        observing: applies readings.
        clock: the worker's clocks.
        on_seen: told what each reading that was applied came to.
    """

    def __init__(self, observing: Observing, clock: Clock, on_seen: OnSeen) -> None:
        self._observing = observing
        self._clock = clock
        self._on_seen = on_seen
        self._next_s: dict[TargetLimits, float] = {}
        self._day_left: dict[tuple[object, ...], tuple[int, float]] = {}
        self._errands = Errands(MAX_RUNNING)

    def note(self, target: Target, lease: Lease, attempt: Attempt) -> None:
        """Look at an answer's headers soon, if it is time for that."""
        if attempt.answered_s < self._next_s.get(target.limits, 0.0):
            return
        if len(self._next_s) >= MAX_ENTRIES:
            self._next_s.clear()
            self._day_left.clear()
        self._next_s[target.limits] = attempt.answered_s + EVERY_S
        if not lease.is_local:
            asyncio.get_running_loop().call_soon(self._look, target, lease, attempt)

    async def settle(self) -> None:
        """Wait until what was found is applied."""
        await asyncio.sleep(0)
        await self._errands.settle()

    async def stop(self) -> None:
        """Drop what is not applied yet."""
        await self._errands.stop()

    def _look(self, target: Target, lease: Lease, attempt: Attempt) -> None:
        headers = attempt.headers
        readings = target.codec.read_quota(headers, self._clock.wall_ms()) if headers else ()
        if not readings:
            self._next_s[target.limits] = attempt.answered_s + SILENT_S
        elif any(self._is_news(target, lease, one) for one in readings):
            self._send(target, readings, attempt.answered_s)

    def _is_news(self, target: Target, lease: Lease, reading: Observation) -> bool:
        """Whether a provider has nothing left, or less than we let through, as far as is known."""
        if reading.remaining is None:
            return False
        if reading.window is QuotaWindow.MINUTE:
            is_requests = reading.kind is QuotaKind.REQUESTS
            left = lease.requests_left if is_requests else lease.tokens_left
            return reading.remaining < max(left, 1)
        left, asked_s = self._day_left.get(day_place(target, reading), (reading.remaining + 1, 0.0))
        is_time = self._clock.monotonic_s() - asked_s >= DAY_EVERY_S
        return is_time and reading.remaining < max(left, 1)

    def _send(self, target: Target, readings: Sequence[Observation], answered_s: float) -> None:
        if not self._errands.is_full:  # else the next answer says it again
            self._errands.begin(self._apply(target, readings, answered_s))

    async def _apply(
        self, target: Target, readings: Sequence[Observation], answered_s: float
    ) -> None:
        now_s = self._clock.monotonic_s()
        age_ms = max(0, round((now_s - answered_s) * MS_PER_S))
        try:
            all_seen = await self._observing.apply(target.limits, readings, age_ms)
        except StoreLostError:
            return  # the next answer says it again
        for seen in all_seen:
            if seen.reading.window is QuotaWindow.DAY:
                left = NO_LIMIT if seen.left is None else seen.left
                self._day_left[day_place(target, seen.reading)] = left, now_s
            self._on_seen(target, seen)


def day_place(target: Target, reading: Observation) -> tuple[object, ...]:
    """What a reading is about."""
    return target.limits, reading.breadth, reading.kind
