"""The elected worker returns what the dead held, in time and not too often; on a real Redis."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import pytest

from cluster_gw.background.heartbeat import Heartbeat
from cluster_gw.background.reaper import Reaper
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.admission import Admissions, Lease, Refusal, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.membership import DeadWorker
from cluster_gw.store.reaping import Reaping, Sweep
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import KeyId, LeaseId
from tests.background.fleet import Fleet, Member

TARGET = TargetLimits(
    provider="p",
    account="k",
    key=KeyId("k"),
    model="m",
    day_reset="rolling",
    model_limits=Limits(concurrency=1),
    key_limits=Limits(),
)
DEMAND = Demand(input_tokens=40, output_tokens=60)


async def nothing() -> None:
    """What usually happens between a decision and its execution."""


class SleepyReaping(Reaping):
    """Lets something happen between the decision to sweep and the sweep."""

    before_sweep: Callable[[], Awaitable[None]]

    async def sweep(
        self,
        dead: Sequence[DeadWorker],
        targets: Iterable[TargetLimits],
        *,
        valid_until_ms: int,
    ) -> Sweep:
        await self.before_sweep()
        return await super().sweep(dead, targets, valid_until_ms=valid_until_ms)


class Worker:
    """The jobs of one worker, run by hand."""

    def __init__(self, member: Member) -> None:
        clock = member.clock
        self.reports: list[tuple[list[str], int]] = []
        self.membership = member.membership()
        self.leadership = member.leadership("reaper")
        self.reaping = SleepyReaping(*member.tools, server_now_ms=clock.server_now_ms)
        self.reaping.before_sweep = nothing
        self.reaper = Reaper(
            self.membership,
            self.leadership,
            self.reaping,
            targets=lambda: [TARGET],
            on_reaped=self._note,
            monotonic_s=clock.monotonic_s,
        )
        self.heartbeat = Heartbeat(self.membership)
        self.admissions = Admissions(
            *member.tools, worker_id=member.name, clock_ms=clock.server_now_ms, **member.clocks
        )

    async def each_second(self) -> None:
        await self.heartbeat.beat()
        await self.reaper.campaign()

    async def each_tick(self) -> None:
        await self.reaper.look()

    async def take(self, lease: str) -> Lease | Refusal:
        return await self.admissions.reserve(TARGET, LeaseId(lease), DEMAND, ttl_ms=600_000)

    def _note(self, dead: Sequence[DeadWorker], leases: int) -> None:
        self.reports.append(([worker.id for worker in dead], leases))


@pytest.fixture
async def fleet(client: RedisClient) -> Fleet[Worker]:
    for script in load_scripts().values():  # so that a count of calls does not depend on the order
        await client.call("SCRIPT", "LOAD", script.text)
    return Fleet(client, Worker)


async def test_slot_of_a_dead_worker_is_free_within_five_seconds(fleet: Fleet[Worker]) -> None:
    one, other, dies = (fleet.worker(name) for name in ("one", "other", "dies"))
    await fleet.run(5, one, other, dies)
    assert isinstance(await dies.take("a"), Lease)

    await fleet.run(3.5, one, other)
    assert isinstance(await one.take("b"), Refusal)
    await fleet.run(1.5, one, other)

    assert isinstance(await one.take("c"), Lease)
    assert one.reports + other.reports == [(["dies"], 1)]


async def test_slot_of_the_dead_leader_is_free_within_five_seconds(fleet: Fleet[Worker]) -> None:
    leads, other = fleet.worker("leads"), fleet.worker("other")
    await fleet.run(5, leads, other)
    assert leads.leadership.term is not None
    assert isinstance(await leads.take("a"), Lease)

    await fleet.run(5, other)

    assert isinstance(await other.take("b"), Lease)
    assert other.reports == [(["leads"], 1)]


async def test_dead_worker_is_dealt_with_twice_and_then_forgotten(fleet: Fleet[Worker]) -> None:
    one, dies = fleet.worker("one"), fleet.worker("dies")
    await fleet.run(5, one, dies)

    await fleet.run(4.5, one)
    before = fleet.client.calls
    await fleet.run(3, one)
    assert await fleet.client.call("ZCARD", "gw1:{mem}:workers") == 1
    # Beats and campaigns, one look again, one sweep and its end; not one sweep at each tick.
    assert fleet.client.calls - before <= 3 + 3 + 1 + 2 + 1 + 1
    assert one.reports == [(["dies"], 0)]


async def test_lease_that_arrived_after_the_first_sweep_is_found_by_the_second(
    fleet: Fleet[Worker],
) -> None:
    one, dies = fleet.worker("one"), fleet.worker("dies")
    await fleet.run(5, one, dies)
    await fleet.run(4.25, one)
    assert one.reports == [(["dies"], 0)]
    assert isinstance(await dies.take("sent before its end"), Lease)

    await fleet.run(1.25, one)

    assert one.reports[1:] == [(["dies"], 1)]


async def test_worker_without_the_role_does_not_reap(fleet: Fleet[Worker]) -> None:
    one, other, dies = (fleet.worker(name) for name in ("one", "other", "dies"))
    await fleet.run(5, one, other, dies)

    await fleet.run(6, one, other)

    assert (len(one.reports), other.reports) == (1, [])


async def test_reaper_that_slept_after_its_decision_changes_nothing(fleet: Fleet[Worker]) -> None:
    one, back = fleet.worker("one"), fleet.worker("back")

    naps: list[int] = []

    async def sleep() -> None:
        if naps:
            return
        naps.append(2)
        fleet.clock.pass_s(2)
        await back.heartbeat.beat()
        assert isinstance(await back.take("new"), Lease)

    one.reaping.before_sweep = sleep
    await fleet.run(5, one, back)
    await fleet.run(4.25, one)

    assert naps == [2]
    assert isinstance(await one.take("b"), Refusal)
    assert one.reports == []


async def test_worker_that_came_back_is_left_alone(fleet: Fleet[Worker]) -> None:
    one, sleeps = fleet.worker("one"), fleet.worker("sleeps")
    await fleet.run(5, one, sleeps)
    await sleeps.take("a")
    await fleet.run(2, one)

    await fleet.run(6, one, sleeps)

    assert one.reports == []
    assert isinstance(await one.take("b"), Refusal)


async def test_worker_that_is_heard_at_the_last_moment_is_left_alone(fleet: Fleet[Worker]) -> None:
    one, sleeps = fleet.worker("one"), fleet.worker("sleeps")
    await fleet.run(5, one, sleeps)
    await sleeps.take("a")
    await fleet.run(3.75, one)
    await sleeps.heartbeat.beat()

    await fleet.run(0.5, one)

    assert one.reports == []
    assert isinstance(await one.take("b"), Refusal)


async def test_nothing_happens_and_nothing_is_raised_while_redis_is_away(
    fleet: Fleet[Worker],
) -> None:
    one, dies = fleet.worker("one"), fleet.worker("dies")
    await fleet.run(5, one, dies)
    await dies.take("a")
    await fleet.run(3, one)
    await fleet.client.close()

    await fleet.run(3, one)

    assert one.reports == []
