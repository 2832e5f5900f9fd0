"""Checks every key of the configuration again and again, for all workers (decision 0036).

Whoever has the role does it: passes that begin 5 min apart, give or take a fifth, in which each
provider is asked about its keys one after the other. In between, the pool is weighed. A pass ends
with the term of its worker; the next one goes on with what is still due.

What an operator orders is checked at once and at the same pace, also what was checked a moment ago
and where passes are switched off. It takes the place of a pass that is running, with what that had
left.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from cluster_gw.background.key_checks import KeyChecks
from cluster_gw.core.limits.check_order import ALL_KEYS, CheckOrder, is_ordered
from cluster_gw.core.limits.degraded import DegradedPolicy
from cluster_gw.core.limits.key_status import CheckPolicy, KeyRecord, is_check_due, plan_checks
from cluster_gw.core.outcome.key_check import KeyVerdict
from cluster_gw.errors import StoreLostError
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.check_orders import Begun, CheckOrders, Outcome
from cluster_gw.store.leadership import Leadership, Term
from cluster_gw.store.status_board import StatusBoard
from cluster_gw.units import DAY_S, MS_PER_S

LOOK_S: Final = 1.0
WEIGH_S: Final = 5.0
FIRST_RATIO: Final = 0.05  # of the interval, 15 s: a new role must not wait for a whole one
JITTER_RATIO: Final = 0.2
FORGET_MS: Final = 7 * DAY_S * MS_PER_S
AGAIN_S: Final = 30.0  # after a check that could not be booked: no provider is asked each second


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
OnServed = Callable[[tuple[CheckOrder, ...], Outcome], None]


class Books(msgspec.Struct, frozen=True, kw_only=True):
    """Where passes read and write.

    Attributes:
        board: where results stand.
        orders: what operators want checked.
    """

    board: StatusBoard
    orders: CheckOrders


class Listener(msgspec.Struct, frozen=True, kw_only=True):
    """Who is told.

    Attributes:
        on_weighed: told when the pool became degraded or well again: which, the providers that can
            be used, and all of them.
        on_served: told which orders are done, and what came of them.
    """

    on_weighed: OnWeighed
    on_served: OnServed


class KeyPass:
    """Runs passes while this worker has the role.

    Args:
        leadership: of the role; somebody else runs for it.
        books: where results and orders stand.
        checks: calls the provider and books what it says.
        view: gives the configuration in force.
        listener: told what a log should have.
        chance: gives numbers from 0 to 1.
        monotonic_s: clock of terms and passes.
    """

    def __init__(
        self,
        leadership: Leadership,
        books: Books,
        checks: KeyChecks,
        *,
        view: Callable[[], PassView],
        listener: Listener,
        chance: Callable[[], float],
        monotonic_s: Callable[[], float],
    ) -> None:
        self._leadership = leadership
        self._board, self._orders = books.board, books.orders
        self._checks = checks
        self._view = view
        self._listener = listener
        self._chance = chance
        self._monotonic_s = monotonic_s
        self._fence = self._version = 0
        self._next_s = self._weigh_s = self._orders_s = 0.0
        self._running: asyncio.Task[None] | None = None
        self._is_serving = False

    async def look(self) -> None:
        """Begin what is ordered, or a pass, and weigh the pool, whichever is due."""
        term, view = self._leadership.term, self._view()
        if term is None:
            await self.stop()
            self._fence = 0
            return
        await self._collect()
        await self._serve_orders(term, view)
        if view.checks.enabled:
            await self._look(term, view)
            return
        if not self._is_serving:
            await self.stop()
        self._fence = 0

    async def _look(self, term: Term, view: PassView) -> None:
        """Begin a usual pass and weigh the pool, whichever is due."""
        now_s = self._monotonic_s()
        if term.fence != self._fence:
            self._fence, self._version = term.fence, view.version
            self._next_s = now_s + FIRST_RATIO * self._interval_s(view)
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
        now_ms = self._server_ms(term)
        await self._check_all(view, self._due(view, now_ms, is_forced=is_forced))
        await self._forget(view, now_ms)

    def _due(self, view: PassView, now_ms: int, *, is_forced: bool = False) -> dict[str, str]:
        """The keys that a usual pass checks now, each with its provider."""
        due: dict[str, str] = {}
        for name, target in view.keys.items():
            record = self._board.keys.get(name) or KeyRecord()
            is_wanted = is_forced and not record.status.is_routed
            if is_wanted or is_check_due(record, view.checks, now_ms):
                due[name] = target.route.provider
        return due

    async def _check_all(self, view: PassView, due: dict[str, str]) -> dict[str, KeyVerdict]:
        """Check keys at the pace of a pass, until the term ends; what was booked of each."""
        started_s = self._monotonic_s()
        slots, found = asyncio.Semaphore(view.checks.concurrency), dict[str, KeyVerdict]()
        async with asyncio.TaskGroup() as group:
            for offset_ms, name in plan_checks(due, view.checks):
                await asyncio.sleep(started_s + offset_ms / MS_PER_S - self._monotonic_s())
                await slots.acquire()
                if self._leadership.term is None:
                    break
                check = group.create_task(self._check(view.keys[name], name, found))
                check.add_done_callback(lambda _: slots.release())
        return found

    async def _serve_orders(self, term: Term, view: PassView) -> None:
        """Begin with what is ordered, unless this worker is at an order."""
        if (self._running is not None and self._is_serving) or (
            self._monotonic_s() < self._orders_s
        ):
            return
        with contextlib.suppress(StoreLostError):
            begun = await self._orders.begin(term.fence)
            if begun is not None and begun.orders:
                await self.stop()
                serving = self._serve(term, view, begun)
                self._is_serving = True
                self._running = asyncio.get_running_loop().create_task(serving)

    async def _serve(self, term: Term, view: PassView, begun: Begun) -> None:
        """Check what is ordered, and what a usual pass would check now."""
        with contextlib.suppress(StoreLostError):
            await self._board.refresh()
        wanted = self._wanted(view, begun)
        due = self._due(view, begun.now_ms) if view.checks.enabled else {}
        found = await self._check_all(view, wanted | due)
        verdicts = [found[name] for name in wanted if name in found]
        if len(verdicts) < len(wanted):
            self._orders_s = self._monotonic_s() + AGAIN_S
            return  # what is left is checked by the next who looks
        outcome = Outcome(
            began_ms=min(one.begun_ms for one in begun.orders),
            valid=verdicts.count(KeyVerdict.VALID),
            rejected=verdicts.count(KeyVerdict.REJECTED),
            unknown=verdicts.count(KeyVerdict.UNKNOWN),
        )
        with contextlib.suppress(StoreLostError):
            if await self._orders.finish(term.fence, begun.orders, outcome):
                self._listener.on_served(begun.orders, outcome)

    def _wanted(self, view: PassView, begun: Begun) -> dict[str, str]:
        """The keys that are ordered and were not checked since, each with its provider."""
        wanted: dict[str, str] = {}
        for name, target in view.keys.items():
            record, provider = self._board.keys.get(name) or KeyRecord(), target.route.provider
            scopes = {ALL_KEYS, self._orders.scope_of(provider, None), name}
            if any(
                one.scope in scopes and is_ordered(record, one, begun.now_ms)
                for one in begun.orders
            ):
                wanted[name] = provider
        return wanted

    async def stop(self) -> None:
        """End the pass that is running."""
        running, self._running = self._running, None
        self._is_serving = False
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _collect(self) -> None:
        """Take note of a pass that is over; what went wrong in it is raised here."""
        if self._running is not None and self._running.done():
            running, self._running = self._running, None
            self._is_serving = False
            await running

    async def _check(self, target: Target, name: str, found: dict[str, KeyVerdict]) -> None:
        with contextlib.suppress(StoreLostError):
            found[name] = await self._checks.check(target)

    def _server_ms(self, term: Term) -> int:
        """The server's clock, by the end of the term."""
        return round(term.until_ms - (term.until_s - self._monotonic_s()) * MS_PER_S)

    async def _weigh(self, term: Term, view: PassView) -> None:
        board, total = self._board, len(view.providers)
        usable = sum(any(map(board.is_routed, names)) for names in view.providers.values())
        weighed = await board.weigh(term.fence, usable, total, view.degraded)
        if weighed is not None and weighed[0]:
            self._listener.on_weighed(weighed[1], usable, total)

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
