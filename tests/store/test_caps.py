"""Caps of a key through the wrapper: names of gates, what is remembered, exact sums."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable

import pytest

from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Gate, Limits
from cluster_gw.store.admission import Admissions, Lease, Refusal, Settlement, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import KeyId, LeaseId

NOW_MS = 1_795_000_000_000
CAPS_KEY = "gw1:w:{p.k}:k:_caps"
FREE = Limits()


def target(
    caps: Caps, model: str = "m", weight: int = 1000, key_limits: Limits = FREE
) -> TargetLimits:
    return TargetLimits(
        provider="p",
        account="k",
        key=KeyId("k"),
        model=model,
        day_reset="rolling",
        model_limits=FREE,
        key_limits=key_limits,
        caps=caps,
        token_weight=weight,
    )


def worker(client: RedisClient, scripts: Scripts, name: str = "w1") -> Admissions:
    return Admissions(
        client,
        scripts,
        Keys("gw1"),
        worker_id=name,
        clock_ms=lambda: NOW_MS,
        monotonic_s=lambda: 0.0,
        server_now_ms=lambda: NOW_MS,
    )


@pytest.fixture
async def admissions(client: RedisClient, scripts: Scripts) -> AsyncIterator[Admissions]:
    admissions = worker(client, scripts)
    yield admissions
    await admissions.close()


async def ask(
    admissions: Admissions, name: str, chosen: TargetLimits, tokens: int = 100
) -> Lease | Refusal:
    demand = Demand(input_tokens=tokens // 2, output_tokens=tokens - tokens // 2)
    return await admissions.reserve(chosen, LeaseId(name), demand, ttl_ms=60_000)


async def counted(client: RedisClient) -> list[int]:
    return [int(number) for number in (await client.call("HGET", CAPS_KEY, "now")).split()]


@pytest.mark.parametrize(
    ("caps", "gate"),
    [
        (Caps(rpm=1), Gate.PROVIDER_MINUTE_CAP),
        (Caps(rpd=1), Gate.PROVIDER_DAILY_CAP),
        (Caps(tpd=150), Gate.PROVIDER_DAILY_TOKEN_CAP),
        (Caps(monthly_tokens=150), Gate.MONTHLY_BUDGET_CAP),
    ],
)
async def test_each_cap_refuses_under_a_name_of_its_own(
    admissions: Admissions, caps: Caps, gate: Gate
) -> None:
    await ask(admissions, "a", target(caps))

    refusal = await ask(admissions, "b", target(caps, "other"))

    assert isinstance(refusal, Refusal)
    assert (refusal.gate, refusal.scope) == (gate, "key")
    assert refusal.retry_after_ms > 0


async def test_tighter_limit_of_the_key_refuses_under_its_own_name(
    admissions: Admissions,
) -> None:
    chosen = target(Caps(rpm=9), key_limits=Limits(rpm=1))
    await ask(admissions, "a", chosen)

    refusal = await ask(admissions, "b", chosen)

    assert isinstance(refusal, Refusal)
    assert refusal.gate is Gate.RPM


async def test_refused_cap_bars_the_other_models_of_the_key(
    admissions: Admissions, client: RedisClient
) -> None:
    await ask(admissions, "a", target(Caps(rpd=1)))
    await ask(admissions, "b", target(Caps(rpd=1)))
    asked = client.calls

    assert isinstance(await ask(admissions, "c", target(Caps(rpd=1), "other")), Refusal)
    assert client.calls == asked


async def test_lighter_model_is_asked_after_a_heavy_one_was_refused(
    admissions: Admissions,
) -> None:
    caps = Caps(tpd=250)
    heavy, light = target(caps, "heavy", 2000), target(caps, "light", 500)
    await ask(admissions, "a", heavy)
    assert isinstance(await ask(admissions, "b", heavy), Refusal)

    assert isinstance(await ask(admissions, "c", light), Lease)


async def test_counters_of_two_workers_equal_the_settled_truth(
    client: RedisClient, scripts: Scripts
) -> None:
    workers = [worker(client, scripts, name) for name in ("w1", "w2")]
    caps, chance = Caps(rpd=10**6, tpd=10**9, monthly_tokens=10**9), random.Random(7)
    models = [target(caps, f"m{n}", weight) for n, weight in enumerate((1000, 2500, 333, 0))]
    requests = weighted = tokens = 0

    async def one(number: int, pick: Callable[[], TargetLimits]) -> None:
        nonlocal requests, weighted, tokens
        admissions, chosen = workers[number % 2], pick()
        lease = await ask(admissions, f"lease-{number}", chosen, chance.randrange(1, 900))
        assert isinstance(lease, Lease)
        fact = Settlement(
            counts_request=chance.random() < 0.9, tokens=chance.randrange(900), outcome="success"
        )
        admissions.settle(lease, fact)
        requests += fact.counts_request
        weighted += fact.tokens * chosen.token_weight
        tokens += fact.tokens

    await asyncio.gather(*(one(number, lambda: chance.choice(models)) for number in range(200)))
    for admissions in workers:
        assert await admissions.drain(5.0) == 0
        await admissions.close()

    day, _, *of_day, month, _, of_month, _ = await counted(client)
    assert (day, month) == (20261118, 202611)
    assert (*of_day, of_month) == (requests, weighted, tokens)
