"""Passes over all keys, by one worker: what they find bars a key or brings it back."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from cluster_gw.background.key_checks import KeyChecks
from cluster_gw.background.key_pass import Books, KeyPass, Listener, PassView
from cluster_gw.core.limits.degraded import DegradedPolicy
from cluster_gw.core.limits.key_status import CheckPolicy, KeyStatus
from cluster_gw.core.outcome.key_check import KeyFinding
from cluster_gw.pipeline.targets import Target, build_targets
from cluster_gw.providers import provider_for
from cluster_gw.simulator.config import SimulatorConfig
from cluster_gw.simulator.directive import FaultRule
from cluster_gw.simulator.server import RunningSimulator, serve_simulator
from cluster_gw.store.check_orders import CheckOrders, Outcome
from cluster_gw.store.client import RedisClient
from cluster_gw.store.plan import Days
from cluster_gw.store.rests import Rests
from cluster_gw.store.settlement import SettlementQueue
from cluster_gw.store.status_board import StatusBoard
from cluster_gw.upstream.client import UpstreamClient
from tests.background.fleet import Member
from tests.pipeline.catalogs import make_catalog, make_key, make_route
from tests.store.clocks import SharedClock

MINUTE_S = 60
AT_ONCE = CheckPolicy(spacing_ms=0)
INVALID, DISABLED, HEALTHY = KeyStatus.INVALID, KeyStatus.DISABLED, KeyStatus.HEALTHY


@pytest.fixture
async def simulator() -> AsyncIterator[RunningSimulator]:
    running = await serve_simulator(SimulatorConfig(any_key=True))
    yield running
    await running.close()


class Worker:
    """One worker's passes, run by hand over the keys `one`, `two`, … of a provider."""

    def __init__(
        self,
        client: RedisClient,
        base_url: str,
        clock: SharedClock,
        *,
        keys: tuple[str, ...] = ("one", "two"),
        name: str = "w1",
        policy: CheckPolicy = AT_ONCE,
    ) -> None:
        member = Member(client, clock, name)
        self.client, self.clock = client, clock
        self.version = 1
        self.weighed: list[tuple[bool, int, int]] = []
        self.served: list[Outcome] = []
        self.booked = asyncio.Event()
        rests = Rests(*member.tools, worker_id=name, server_now_ms=clock.server_now_ms)
        self.board = StatusBoard(
            *member.tools,
            SettlementQueue(client, Days(), clock_ms=clock.server_now_ms, **member.clocks),
            wall_ms=clock.server_now_ms,
            server_now_ms=clock.server_now_ms,
        )
        self.orders = CheckOrders(*member.tools, server_now_ms=clock.server_now_ms)
        self.upstream = UpstreamClient()
        self.upstream.open()
        self.checks = KeyChecks(
            self.upstream,
            rests,
            lambda target: rests.key_of([target.limits]),
            on_checked=lambda _target, _verdict: None,
            clock_ms=clock.server_now_ms,
            book=self._book,
        )
        self.leadership = member.leadership("prober")
        self.targets = self._targets(base_url, keys)
        self.policy = policy
        self.key_pass = KeyPass(
            self.leadership,
            Books(board=self.board, orders=self.orders),
            self.checks,
            view=self.view,
            listener=Listener(
                on_weighed=lambda *what: self.weighed.append(what),
                on_served=lambda _orders, outcome: self.served.append(outcome),
            ),
            chance=lambda: 0.5,
            monotonic_s=clock.monotonic_s,
        )

    @staticmethod
    def _targets(base_url: str, keys: tuple[str, ...]) -> list[Target]:
        route = make_route("m", keys=tuple(map(make_key, keys)), base_url=base_url)
        built = build_targets(make_catalog(route), lambda key: f"secret-{key}", provider_for)
        return list(built[route.id].values())

    def view(self) -> PassView:
        named = {self.board.name_of(one.route.provider, one.key.id): one for one in self.targets}
        return PassView(
            keys=named,
            providers={"p": frozenset(named)},
            checks=self.policy,
            degraded=DegradedPolicy(min_providers=1, entry_s=0, exit_s=0),
            version=self.version,
        )

    async def _book(self, target: Target, finding: KeyFinding, took_ms: int) -> None:
        await self.board.book_check(
            target.route.provider,
            target.key.id,
            finding.verdict.value,
            finding.reason,
            disable_after=self.policy.disable_after,
            took_ms=took_ms,
        )
        self.booked.set()

    async def lead(self) -> None:
        assert await self.leadership.campaign() is not None

    async def run(self, *, is_forced: bool = False) -> None:
        """Run one pass."""
        await self.lead()
        assert self.leadership.term is not None
        await self.key_pass.run(self.leadership.term, self.view(), is_forced=is_forced)

    async def look(self) -> None:
        """Look once and wait for the pass that this began."""
        await self.key_pass.look()
        if self.key_pass._running is not None:
            await asyncio.gather(self.key_pass._running, return_exceptions=True)

    async def statuses(self) -> list[KeyStatus]:
        await self.board.refresh()
        return [self.board.record(one.route.provider, one.key.id).status for one in self.targets]

    async def close(self) -> None:
        await self.key_pass.stop()
        await self.checks.stop()
        await self.upstream.close()


@pytest.fixture
async def worker(
    client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> AsyncIterator[Worker]:
    worker = Worker(client, simulator.base_url, clock)
    yield worker
    await worker.close()


def listings(simulator: RunningSimulator) -> int:
    count: int = simulator.stats()["totals"]["listings"]
    return count


def answer(simulator: RunningSimulator, code: int, times: int | None = None) -> None:
    """Have the listings of all keys answered with this status."""
    rule: dict[str, Any] = {
        "fault": {"kind": "status", "code": code},
        "match": {"call": "models"},
        "times": times,
    }
    simulator.provider.faults.add([msgspec.convert(rule, FaultRule)])


async def test_pass_asks_once_about_each_key(worker: Worker, simulator: RunningSimulator) -> None:
    await worker.run()

    assert listings(simulator) == 2
    assert await worker.statuses() == [HEALTHY, HEALTHY]
    assert not worker.board


async def test_rejected_key_is_barred_for_every_worker_and_comes_back_by_itself(
    worker: Worker, client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> None:
    other = Worker(client, simulator.base_url, clock, name="w2")
    answer(simulator, 401)
    await worker.run()
    await other.board.refresh()
    refusal = other.board.barring("p", "one", "m")
    simulator.provider.faults.clear()
    clock.pass_s(5 * MINUTE_S)

    await worker.run()
    await other.board.refresh()

    assert refusal is not None
    assert (refusal.gate.value, refusal.scope) == ("key_invalid", "key")
    assert other.board.barring("p", "one", "m") is None
    assert await worker.statuses() == [HEALTHY, HEALTHY]
    await other.close()


@pytest.mark.parametrize("code", [429, 402, 404, 500, 503])
async def test_no_other_answer_demotes_or_restores_a_key(
    worker: Worker, simulator: RunningSimulator, clock: SharedClock, code: int
) -> None:
    await worker.run()
    answer(simulator, code)
    clock.pass_s(5 * MINUTE_S)
    await worker.run()
    well = await worker.statuses()
    simulator.provider.faults.clear()
    answer(simulator, 403, times=2)
    answer(simulator, code)
    clock.pass_s(5 * MINUTE_S)
    await worker.run()
    clock.pass_s(5 * MINUTE_S)
    await worker.run()

    assert well == [HEALTHY, HEALTHY]
    assert await worker.statuses() == [INVALID, INVALID]


async def test_provider_that_cannot_be_reached_never_demotes_its_keys(
    client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> None:
    worker = Worker(client, simulator.base_url, clock)
    await worker.run()
    worker.targets = worker._targets("http://127.0.0.1:9/v1", ("one", "two"))
    for _ in range(4):
        clock.pass_s(5 * MINUTE_S)
        await worker.run()

    assert await worker.statuses() == [HEALTHY, HEALTHY]
    assert worker.board.record("p", "one").said == "unknown"
    await worker.close()


async def test_key_that_was_checked_a_moment_ago_is_left_alone(
    worker: Worker, simulator: RunningSimulator, clock: SharedClock
) -> None:
    await worker.run()
    clock.pass_s(3 * MINUTE_S)
    await worker.run()
    too_early = listings(simulator)
    clock.pass_s(1 * MINUTE_S)

    await worker.run()

    assert (too_early, listings(simulator)) == (2, 4)


async def test_key_that_was_rejected_three_times_is_asked_about_seldom(
    worker: Worker, simulator: RunningSimulator, clock: SharedClock
) -> None:
    answer(simulator, 401)
    seen = []
    for _ in range(16):
        await worker.run()
        seen.append((listings(simulator) // 2, (await worker.statuses())[0]))
        clock.pass_s(5 * MINUTE_S)

    assert seen[:3] == [(1, INVALID), (2, INVALID), (3, DISABLED)]
    assert [count for count, _ in seen[3:]] == [3] * 11 + [4] * 2


async def test_changed_configuration_has_barred_keys_checked_at_once(
    worker: Worker, simulator: RunningSimulator, clock: SharedClock
) -> None:
    answer(simulator, 401, times=6)
    for _ in range(3):
        await worker.run()
        clock.pass_s(5 * MINUTE_S)
    await worker.lead()
    await worker.look()
    before = listings(simulator)
    worker.version += 1

    await worker.look()

    assert listings(simulator) == before + 2
    assert await worker.statuses() == [HEALTHY, HEALTHY]


async def test_only_the_worker_with_the_role_checks(
    worker: Worker, client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> None:
    other = Worker(client, simulator.base_url, clock, name="w2")
    began = []
    for _ in range(20):
        await worker.lead()
        assert await other.leadership.campaign() is None
        for one in (other, worker):
            await one.look()
            began.append(one if one.key_pass._running else None)
        clock.pass_s(1)

    assert listings(simulator) == 2
    assert other not in began
    await other.close()


async def test_first_pass_follows_soon_and_the_next_after_an_interval(
    worker: Worker, simulator: RunningSimulator, clock: SharedClock
) -> None:
    at_s = []
    for second in range(330):
        await worker.lead()
        before = listings(simulator)
        await worker.look()
        if listings(simulator) > before:
            at_s.append(second)
        clock.pass_s(1)

    assert at_s == [15, 315]


async def test_pass_ends_with_the_term_of_its_worker(
    worker: Worker, simulator: RunningSimulator, clock: SharedClock
) -> None:
    await worker.lead()
    term = worker.leadership.term
    assert term is not None
    clock.pass_s(4)

    await worker.key_pass.run(term, worker.view())

    assert listings(simulator) == 0


async def test_checks_can_be_switched_off(
    client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> None:
    worker = Worker(client, simulator.base_url, clock, policy=CheckPolicy(enabled=False))
    for _ in range(400):
        await worker.lead()
        await worker.look()
        clock.pass_s(1)

    assert listings(simulator) == 0
    await worker.close()


async def test_no_more_checks_run_at_a_time_than_the_operator_allows(
    client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> None:
    keys = tuple(f"k{number}" for number in range(12))
    policy = CheckPolicy(spacing_ms=0, concurrency=3)
    worker = Worker(client, simulator.base_url, clock, keys=keys, policy=policy)
    running, most = 0, 0
    call = worker.checks._call

    async def counted(target: Target) -> KeyFinding:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await call(target)
        finally:
            running -= 1

    worker.checks._call = counted  # type: ignore[method-assign]
    await worker.run()

    assert most == 3
    assert listings(simulator) == 12
    await worker.close()


async def test_pool_without_a_usable_provider_is_degraded_and_recovers(
    worker: Worker, simulator: RunningSimulator, clock: SharedClock
) -> None:
    answer(simulator, 401)
    await worker.run()
    await worker.look()
    await worker.board.refresh()
    was_degraded = worker.board.pool.is_degraded
    simulator.provider.faults.clear()
    clock.pass_s(6)
    await worker.run()
    await worker.look()

    assert was_degraded
    assert worker.weighed == [(True, 0, 1), (False, 1, 1)]


async def test_key_of_no_configuration_is_forgotten_after_a_week(
    worker: Worker, clock: SharedClock
) -> None:
    await worker.run()
    worker.targets = worker.targets[:1]
    clock.pass_s(8 * 86_400)
    await worker.run()
    await worker.board.refresh()

    assert list(worker.board.keys) == ["p.one"]
