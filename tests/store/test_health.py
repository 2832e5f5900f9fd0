"""Health through admission and settlement: what a lease tells, and what a worker remembers."""

from collections.abc import AsyncIterator

import pytest

from cluster_gw.core.limits.breaker import BreakerPolicy, Evidence
from cluster_gw.core.limits.cooldown import Cause, Cooldown, Scope
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Gate, Limits
from cluster_gw.store.admission import (
    Admissions,
    Lease,
    Outcome,
    Refusal,
    Settlement,
    TargetLimits,
)
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import KeyId, LeaseId

NOW_MS = 1_795_000_000_000
DEMAND = Demand(input_tokens=40, output_tokens=60)
POLICY = BreakerPolicy(threshold=1, cooldown_ms=500)
FAILURE = Outcome(evidence=Evidence.FAILURE, breaker=POLICY)
SUCCESS = Outcome(evidence=Evidence.SUCCESS, breaker=POLICY)


class Clock:
    """One clock for worker and scripts."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def ms(self) -> int:
        return self.now_ms

    def seconds(self) -> float:
        return self.now_ms / 1000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def admissions(
    client: RedisClient, scripts: Scripts, clock: Clock
) -> AsyncIterator[Admissions]:
    admissions = Admissions(
        client,
        scripts,
        Keys("gw1"),
        worker_id="w1",
        clock_ms=clock.ms,
        monotonic_s=clock.seconds,
        server_now_ms=clock.ms,
    )
    yield admissions
    await admissions.close()


def target(model: str = "m") -> TargetLimits:
    return TargetLimits(
        provider="p",
        account="a",
        key=KeyId("k"),
        model=model,
        day_reset="rolling",
        model_limits=Limits(),
        key_limits=Limits(),
    )


async def take(admissions: Admissions, name: str, model: str = "m") -> Lease:
    lease = await admissions.reserve(target(model), LeaseId(name), DEMAND, ttl_ms=30_000)
    assert isinstance(lease, Lease)
    return lease


async def refused(admissions: Admissions, name: str, model: str = "m") -> Refusal:
    refusal = await admissions.reserve(target(model), LeaseId(name), DEMAND, ttl_ms=30_000)
    assert isinstance(refusal, Refusal)
    return refusal


async def end(admissions: Admissions, lease: Lease, health: Outcome) -> None:
    done = Settlement(counts_request=True, tokens=7, outcome="any", health=health)
    admissions.settle(lease, done)
    assert await admissions.drain(5.0) == 0


async def test_lease_of_a_target_that_is_well_tells_of_no_trial(admissions: Admissions) -> None:
    lease = await take(admissions, "a")

    assert (lease.generation, lease.is_trial) == (0, False)
    assert lease.reserved_at_ms == NOW_MS


async def test_one_admission_after_an_open_breaker_is_the_trial(
    admissions: Admissions, clock: Clock
) -> None:
    await end(admissions, await take(admissions, "a"), FAILURE)
    assert (await refused(admissions, "b")).gate is Gate.BREAKER_OPEN
    clock.now_ms += 1_200

    trial = await take(admissions, "c")
    other = await refused(admissions, "d")

    assert (trial.is_trial, trial.reserved_at_ms) == (True, clock.now_ms)
    assert trial.generation >= NOW_MS * 1000
    assert (other.gate, other.scope, other.retry_after_ms) == (Gate.TRIAL_TAKEN, "model", 1000)


async def test_end_of_its_own_trial_lets_a_worker_ask_at_once(
    admissions: Admissions, clock: Clock
) -> None:
    await end(admissions, await take(admissions, "a"), FAILURE)
    clock.now_ms += 1_200
    trial = await take(admissions, "b")
    await refused(admissions, "c")

    await end(admissions, trial, SUCCESS)

    assert not (await take(admissions, "d")).is_trial


async def test_late_failure_of_an_older_generation_does_not_open_the_breaker_again(
    admissions: Admissions, clock: Clock
) -> None:
    early = await take(admissions, "early")
    await end(admissions, await take(admissions, "a"), FAILURE)
    clock.now_ms += 1_200
    await end(admissions, await take(admissions, "trial"), SUCCESS)

    await end(admissions, early, FAILURE)

    assert isinstance(await take(admissions, "b"), Lease)


async def test_rest_of_a_key_holds_for_its_other_models_and_is_remembered(
    admissions: Admissions, client: RedisClient
) -> None:
    rest = Cooldown(scope=Scope.KEY, reason=Cause.CREDIT, wait_ms=60_000)
    await end(admissions, await take(admissions, "a"), Outcome(cooldown=rest))

    first = await refused(admissions, "b", "other")
    asked = client.calls
    second = await refused(admissions, "c", "third")

    assert (first.gate, first.scope, first.retry_after_ms) == (Gate.COOLDOWN, "key", 60_000)
    assert second == first
    assert client.calls == asked
