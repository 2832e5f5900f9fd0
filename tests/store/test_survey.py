"""What the builder reads of all targets equals what requests left behind."""

import pytest

from cluster_gw.core.limits.breaker import BreakerPolicy, Evidence
from cluster_gw.core.limits.cooldown import Cause, Cooldown, Scope
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.usage import WindowUse
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.routing.snapshot import HealthView
from cluster_gw.core.routing.statistics import BUCKET_MS, Result, Sample
from cluster_gw.store.admission import Admissions, Lease, Outcome, Settlement, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.survey import WINDOW, Survey
from cluster_gw.units import KeyId, LeaseId
from tests.store.clocks import NOW_MS, SharedClock

DEMAND = Demand(input_tokens=40, output_tokens=60)
ANSWERED = Settlement(
    counts_request=True,
    tokens=70,
    outcome="success",
    sample=Sample(result=Result.SUCCESS, output_tokens=30, latency_ms=600, first_byte_ms=100),
)


def target(number: int, *, account: str = "acc") -> TargetLimits:
    return TargetLimits(
        provider="p",
        account=account,
        key=KeyId("k"),
        model=f"m{number}",
        day_reset="rolling",
        model_limits=Limits(),
        key_limits=Limits(rpm=1000),
    )


class Stage:
    def __init__(self, client: RedisClient, scripts: Scripts, keys: Keys) -> None:
        self.clock = SharedClock()
        self._taken = 0
        self.admissions = Admissions(
            client,
            scripts,
            keys,
            worker_id="w1",
            clock_ms=self.clock.server_now_ms,
            monotonic_s=self.clock.monotonic_s,
            server_now_ms=self.clock.server_now_ms,
        )
        self.survey = Survey(client, scripts, keys, server_now_ms=self.clock.server_now_ms)

    async def take(self, one: TargetLimits, *, settled: Settlement | None = None) -> None:
        self._taken += 1
        lease = await self.admissions.reserve(
            one, LeaseId(f"lease-{self._taken}"), DEMAND, ttl_ms=60_000
        )
        assert isinstance(lease, Lease)
        if settled is not None:
            self.admissions.settle(lease, settled)
            assert await self.admissions.drain(5.0) == 0


@pytest.fixture
async def stage(client: RedisClient, scripts: Scripts, keys: Keys) -> Stage:
    return Stage(client, scripts, keys)


async def test_use_of_windows_is_read_as_it_is_counted(stage: Stage) -> None:
    one, other = target(1), target(2)
    await stage.take(one, settled=ANSWERED)
    await stage.take(one)
    await stage.take(other)

    found = await stage.survey.take([one, other])

    assert found.at_ms == NOW_MS
    assert found.windows == {
        "gw1:w:{p.acc}:k:m1": WindowUse(2, 170, 2, 170, 1),
        "gw1:w:{p.acc}:k:m2": WindowUse(1, 100, 1, 100, 1),
        "gw1:w:{p.acc}:k:_all": WindowUse(3, 270, 3, 270, 2),
    }


async def test_only_the_kinds_that_are_asked_for_are_read(stage: Stage) -> None:
    await stage.take(target(1), settled=ANSWERED)

    found = await stage.survey.take([target(1)], frozenset({WINDOW}))

    assert (len(found.windows), found.health, found.statistics) == (2, {}, {})


async def test_statistics_are_as_of_the_read_also_when_nobody_called_for_days(
    stage: Stage,
) -> None:
    one = target(1)
    await stage.take(one, settled=ANSWERED)
    (fresh,) = (await stage.survey.take([one])).statistics.values()
    stage.clock.pass_s(8 * BUCKET_MS / 1000)
    (old,) = (await stage.survey.take([one])).statistics.values()
    stage.clock.pass_s(30 * BUCKET_MS / 1000)
    (gone,) = (await stage.survey.take([one])).statistics.values()

    assert (fresh.successes, fresh.output_tokens) == pytest.approx((1.0, 30.0))
    assert (old.successes, old.output_tokens) == pytest.approx((0.5, 15.0))
    assert gone.successes == 0.0


@pytest.mark.parametrize("sums", ["-5 0 0 0 0 0 0", "nan 0 0 0 0 0 0", "1 0 0 inf 9 0 0"])
async def test_statistics_that_cannot_be_are_left_out_and_told(
    client: RedisClient, stage: Stage, sums: str
) -> None:
    one, other = target(1), target(2)
    for each in (one, other):
        await stage.take(each, settled=ANSWERED)
    await client.call("HSET", "gw1:b:{p.acc}:k:m1", "older", sums)

    told: list[str] = []
    client.unreadable.listen(told.extend)

    found = await stage.survey.take([one, other])

    assert set(found.statistics) == {"gw1:b:{p.acc}:k:m2"}
    assert told == ["gw1:b:{p.acc}:k:m1"]


async def test_tokens_of_the_month_are_those_of_every_attempt_and_end_with_it(
    stage: Stage,
) -> None:
    one, failed = target(1), Settlement(counts_request=True, tokens=9, outcome="failure")
    for settled in (ANSWERED, ANSWERED, failed):
        await stage.take(one, settled=settled)
    fresh = (await stage.survey.take([one])).months
    stage.clock.pass_s(2 * BUCKET_MS / 1000)
    later = (await stage.survey.take([one])).months
    stage.clock.pass_s(40 * 86_400)

    assert fresh == later == {"gw1:b:{p.acc}:k:m1": 149}
    assert (await stage.survey.take([one])).months == {}


async def test_rests_and_breakers_are_read_with_their_ends(stage: Stage) -> None:
    sick, resting = target(1), target(2)
    failed = Outcome(evidence=Evidence.FAILURE, breaker=BreakerPolicy(threshold=1))
    rest = Cooldown(scope=Scope.TARGET, reason=Cause.RATE_LIMIT, wait_ms=90_000)
    for one, health in ((sick, failed), (resting, Outcome(cooldown=rest))):
        ended = Settlement(counts_request=True, tokens=0, outcome="x", health=health)
        await stage.take(one, settled=ended)

    found = await stage.survey.take([sick, resting])

    assert found.health == {
        "gw1:h:{p.acc}:k:m1": HealthView(breaker="open", breaker_until_ms=NOW_MS + 30_000, fails=1),
        "gw1:h:{p.acc}:k:m2": HealthView(rest_until_ms=NOW_MS + 90_000, rest_reason="rate_limit"),
    }


async def test_many_targets_of_many_accounts_are_all_read(stage: Stage) -> None:
    everything = [target(m, account=f"a{a}") for a in range(3) for m in range(40)]
    for one in everything:
        await stage.take(one)

    found = await stage.survey.take(everything)

    assert len(found.windows) == 3 * 41
    assert (found.health, found.statistics) == ({}, {})


async def test_nothing_is_read_of_nothing(stage: Stage) -> None:
    found = await stage.survey.take([])

    assert (found.windows, found.health, found.statistics) == ({}, {}, {})
