"""One worker's view of providers in trouble: what it knows, tells and takes, on a real server."""

import asyncio

import pytest

from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.limits.standing import ProviderStanding
from cluster_gw.core.limits.windows import Gate, Limits
from cluster_gw.store.admission import Admissions, Lease, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.outages import Outages
from cluster_gw.store.provider_health import ProviderHealth
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import KeyId, LeaseId
from tests.store.clocks import NOW_MS, SharedClock

REST_MS = 30_000


class Worker:
    def __init__(
        self, client: RedisClient, scripts: Scripts, clock: SharedClock, name: str
    ) -> None:
        self.clock = clock
        self.opened: list[tuple[str, int]] = []
        self.admissions = Admissions(
            client,
            scripts,
            Keys("gw1"),
            worker_id=name,
            clock_ms=clock.server_now_ms,
            monotonic_s=clock.monotonic_s,
            server_now_ms=clock.server_now_ms,
        )
        self.providers = ProviderHealth(
            client,
            scripts,
            Keys("gw1"),
            self.admissions.settlements,
            worker_id=name,
            monotonic_s=clock.monotonic_s,
            server_now_ms=clock.server_now_ms,
        )
        self.providers.on_opened = lambda provider, ms: self.opened.append((provider, ms))

    def lease(self, name: str, model: str = "m") -> Lease:
        return Lease(
            id=LeaseId(name),
            target=TargetLimits(
                provider="p",
                account="k",
                key=KeyId("k"),
                model=model,
                day_reset="rolling",
                model_limits=Limits(),
                key_limits=Limits(),
            ),
            estimate_tokens=0,
            prompt_tokens=0,
            admitted_at_s=0.0,
            reserved_at_ms=self.clock.server_now_ms(),
        )

    async def fail(self, *models: str) -> None:
        for model in models:
            self.providers.failed(self.lease(f"lease-of-{model}", model), REST_MS)
        await self.admissions.drain(1.0)

    async def state(self) -> BreakerState:
        return (await self.providers.look("p")).state


@pytest.fixture
def clock() -> SharedClock:
    return SharedClock()


@pytest.fixture
async def worker(client: RedisClient, scripts: Scripts, clock: SharedClock) -> Worker:
    return Worker(client, scripts, clock, "w1")


async def test_worker_whose_failure_opens_a_provider_is_told_so_and_bars_it(worker: Worker) -> None:
    await worker.fail("a", "b", "c", "d")

    refusal = worker.providers.barring("p")

    assert worker.opened == [("p", REST_MS)]
    assert refusal is not None
    assert (refusal.gate, refusal.scope, refusal.retry_after_ms) == (
        Gate.PROVIDER_OPEN,
        "provider",
        REST_MS,
    )
    assert worker.providers.barring("q") is None


async def test_another_worker_learns_of_it_by_looking(
    worker: Worker, client: RedisClient, scripts: Scripts, clock: SharedClock
) -> None:
    other = Worker(client, scripts, clock, "w2")
    await worker.fail("a", "b", "c")

    before = other.providers.barring("p")
    await other.providers.refresh(["p", "q"])

    assert before is None
    assert other.providers.barring("p") is not None
    assert other.providers.is_shut("p")


async def test_trial_whose_grant_was_not_heard_of_is_given_back(
    worker: Worker, clock: SharedClock
) -> None:
    await worker.fail("a", "b", "c")
    clock.pass_s(REST_MS / 1000)

    asking = asyncio.create_task(worker.providers.enter("p", LeaseId("lost"), 600_000))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await worker.admissions.drain(1.0)

    assert await worker.providers.enter("p", LeaseId("next"), 600_000) is None
    assert worker.providers.trials == {LeaseId("next"): "p"}


async def test_success_of_a_provider_that_is_well_is_not_told(
    worker: Worker, client: RedisClient
) -> None:
    worker.providers.succeeded(worker.lease("a"), REST_MS)
    await worker.admissions.drain(1.0)

    assert await client.call("EXISTS", "gw1:pb:{p}", "gw1:hz:{p}") == 0


async def test_success_of_a_provider_in_doubt_is_told_once_a_second(worker: Worker) -> None:
    await worker.fail("a", "b")
    told = worker.admissions.settlements.applied

    for number in range(5):
        worker.providers.succeeded(worker.lease(f"n{number}"), REST_MS)
    await worker.admissions.drain(1.0)

    assert worker.admissions.settlements.applied - told == 1
    assert (await worker.providers.look("p")).failed == 0


def test_what_was_seen_earlier_replaces_nothing_later() -> None:
    outages = Outages()
    is_open = ProviderStanding(seen_ms=NOW_MS + 5, state=BreakerState.OPEN, wait_ms=9_000)
    outages.note("p", is_open, 1.0)
    outages.note("p", ProviderStanding(seen_ms=NOW_MS), 1.1)

    assert outages.barring("p", 2.0) is not None
    assert outages.barring("p", 10.0) is None
    assert outages.is_shut("p")
