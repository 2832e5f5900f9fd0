"""Checks every key of the configuration again and again, for all workers (decision 0036).

Whoever has the role does it: passes that begin 5 min apart, give or take a fifth, in which each
provider is asked about its keys one after the other. In between, the pool is weighed. A pass ends
with the term of its worker; the next one goes on with what is still due.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from cluster_gw.background.key_checks import KeyChecks
from cluster_gw.core.limits.degraded import DegradedPolicy
from cluster_gw.core.limits.key_status import CheckPolicy, KeyRecord, is_check_due, plan_checks
from cluster_gw.errors import StoreLostError
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.leadership import Leadership, Term
from cluster_gw.store.status_board import StatusBoard
from cluster_gw.units import DAY_S, MS_PER_S

LOOK_S: Final = 1.0
WEIGH_S: Final = 5.0
FIRST_RATIO: Final = 0.05  # of the interval, 15 s: a new role must not wait for a whole one
JITTER_RATIO: Final = 0.2
FORGET_MS: Final = 7 * DAY_S * MS_PER_S


class PassView(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration in force, as far as passes are concerned.

    Attributes:
        keys: by its name on the board, a target each key can be checked with.
        providers: the names of the keys of each provider, also of those that cannot be checked.
        version: of the configuration.
    """

    keys: Mapping[str, Target]
    providers: Mapping[str, frozenset[str]]
    checks: CheckPolicy
    degraded: DegradedPolicy
    version: int


OnWeighed = Callable[[bool, int, int], None]


class KeyPass:
    """Runs passes while this worker has the role.

    Args:
        leadership: of the role; somebody else runs for it.
        board: where results stand.
        checks: calls the provider and books what it says.
        view: gives the configuration in force.
        on_weighed: told when the pool became degraded or well again: which, the providers that can
            be used, and all of them.
        chance: gives numbers from 0 to 1.
        monotonic_s: clock of terms and passes.
    """

    def __init__(
        self,
        leadership: Leadership,
        board: StatusBoard,
        checks: KeyChecks,
        *,
        view: Callable[[], PassView],
        on_weighed: OnWeighed,
        chance: Callable[[], float],
        monotonic_s: Callable[[], float],
    ) -> None:
        self._leadership = leadership
        self._board = board
        self._checks = checks
        self._view = view
        self._on_weighed = on_weighed
        self._chance = chance
        self._monotonic_s = monotonic_s
        self._fence = self._version = 0
        self._next_s = self._weigh_s = 0.0
        self._running: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Begin a pass and weigh the pool, whichever is due."""
        term, view = self._leadership.term, self._view()
        if term is None or not view.checks.enabled:
            await self.stop()
            self._fence = 0
            return
        now_s = self._monotonic_s()
        if term.fence != self._fence:
            self._fence, self._version = term.fence, view.version
            self._next_s = now_s + FIRST_RATIO * self._interval_s(view)
        await self._collect()
        # A changed configuration may hold the mended secret of a key that was rejected.
        is_forced = view.version != self._version
        if self._running is None and (is_forced or now_s >= self._next_s):
            self._version = view.version
            self._next_s = now_s + self._interval_s(view)
            run = self.run(term, view, is_forced=is_forced)
            self._running = asyncio.get_running_loop().create_task(run)
        if now_s >= self._weigh_s:
            self._weigh_s = now_s + WEIGH_S
            with contextlib.suppress(StoreLostError):
                await self._weigh(term, view)

    async def run(self, term: Term, view: PassView, *, is_forced: bool = False) -> None:
        """Check all keys that are due, and those that are barred if it is forced."""
        with contextlib.suppress(StoreLostError):
            await self._board.refresh()
        started_s = self._monotonic_s()
        now_ms = round(term.until_ms - (term.until_s - started_s) * MS_PER_S)
        due: dict[str, str] = {}
        for name, target in view.keys.items():
            record = self._board.keys.get(name) or KeyRecord()
            is_wanted = is_forced and not record.status.is_routed
            if is_wanted or is_check_due(record, view.checks, now_ms):
                due[name] = target.route.provider
        slots = asyncio.Semaphore(view.checks.concurrency)
        async with asyncio.TaskGroup() as group:
            for offset_ms, name in plan_checks(due, view.checks):
                await asyncio.sleep(started_s + offset_ms / MS_PER_S - self._monotonic_s())
                await slots.acquire()
                if self._leadership.term is None:
                    break
                check = group.create_task(self._check(view.keys[name]))
                check.add_done_callback(lambda _: slots.release())
        await self._forget(view, now_ms)

    async def stop(self) -> None:
        """End the pass that is running."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _collect(self) -> None:
        """Take note of a pass that is over; what went wrong in it is raised here."""
        if self._running is not None and self._running.done():
            running, self._running = self._running, None
            await running

    async def _check(self, target: Target) -> None:
        with contextlib.suppress(StoreLostError):
            await self._checks.check(target)

    async def _weigh(self, term: Term, view: PassView) -> None:
        board, total = self._board, len(view.providers)
        usable = sum(any(map(board.is_routed, names)) for names in view.providers.values())
        weighed = await board.weigh(term.fence, usable, total, view.degraded)
        if weighed is not None and weighed[0]:
            self._on_weighed(weighed[1], usable, total)

    async def _forget(self, view: PassView, now_ms: int) -> None:
        """Forget keys that have been in no configuration for long."""
        known = {name for names in view.providers.values() for name in names}
        with contextlib.suppress(StoreLostError):
            for name, record in self._board.keys.items():
                if name not in known and now_ms - record.checked_ms > FORGET_MS:
                    await self._board.forget_key(name)

    def _interval_s(self, view: PassView) -> float:
        """The interval, give or take a fifth, so that several clusters do not fall in step."""
        return view.checks.interval_s * (1 + JITTER_RATIO * (2 * self._chance() - 1))
