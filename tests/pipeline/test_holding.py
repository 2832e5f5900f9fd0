"""Settling what a client holds, and the words in which it is refused."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from cluster_gw.core.limits.allowance import Allowance, ClientGate
from cluster_gw.pipeline.estimator import Estimator
from cluster_gw.pipeline.exchange import Hold
from cluster_gw.pipeline.holding import Holding, refusal_body
from cluster_gw.store.admission import Admissions
from cluster_gw.store.client import RedisClient
from cluster_gw.store.clients import Claim, ClientRefusal, Holds, Standing, Used
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import load_scripts
from cluster_gw.telemetry.registry import Registry
from cluster_gw.units import ClientId, LeaseId

EVERYTHING = Allowance(
    rpm=60, tpm=9000, concurrency=8, monthly_tokens=1_000_000, monthly_micro_usd=2_500_000
)


@pytest.fixture
async def holds(client: RedisClient) -> AsyncIterator[Holds]:
    scripts, keys = load_scripts(), Keys("gw1")
    admissions = Admissions(
        client, scripts, keys, worker_id="w", clock_ms=lambda: 0, monotonic_s=lambda: 0.0
    )
    holds = Holds(
        client, scripts, keys, admissions.settlements, worker_id="w", monotonic_s=lambda: 0.0
    )
    await client.call("HGET", "gw1:none", "any")  # until the scripts are loaded, writes may wait
    yield holds
    await admissions.close()


def holding_one(allowance: Allowance) -> Any:
    """As much of an exchange as settling a hold looks at."""
    claim = Claim(
        id=LeaseId("r1"),
        client=ClientId("app"),
        allowance=allowance,
        tokens=10,
        prompt_tokens=4,
        micro_usd=0,
        prompt_micro_usd=0,
    )
    return SimpleNamespace(hold=Hold(claim=claim, is_sent=True, is_granted=True), used=Used())


async def finish(holding: Holding, exchange: Any) -> None:
    """What the accounts do just before the last byte goes out."""
    if holding.finish(exchange):
        await asyncio.sleep(0)


async def test_a_freed_slot_is_on_its_way_to_redis_before_the_answer_is_sent(
    client: RedisClient, holds: Holds
) -> None:
    before = client.flushes

    await finish(Holding(holds, Estimator(), Registry()), holding_one(Allowance(concurrency=1)))

    assert client.flushes == before + 1


async def test_an_answer_waits_for_nothing_where_concurrency_is_free(
    client: RedisClient, holds: Holds
) -> None:
    before = client.flushes

    await finish(Holding(holds, Estimator(), Registry()), holding_one(Allowance(rpm=1)))

    assert client.flushes == before


async def test_a_hold_is_settled_once_however_often_it_is_ended(
    client: RedisClient, holds: Holds
) -> None:
    holding, exchange = (
        Holding(holds, Estimator(), Registry()),
        holding_one(Allowance(concurrency=1)),
    )
    before = client.calls

    await finish(holding, exchange)
    holding.settle(exchange)

    assert client.calls == before + 1


@pytest.mark.parametrize(
    ("gate", "status", "code", "words"),
    [
        (ClientGate.RPM, 429, "client_rate_limited", "60 requests per minute"),
        (ClientGate.TPM, 429, "client_rate_limited", "9000 tokens per minute"),
        (ClientGate.CONCURRENCY, 429, "client_rate_limited", "8 requests at a time"),
        (ClientGate.MONTHLY_TOKENS, 402, "client_budget_exceeded", "1000000 tokens of the month"),
        (ClientGate.MONTHLY_USD, 402, "client_budget_exceeded", "2.5 USD of the month"),
        (ClientGate.TOO_LARGE, 413, "client_request_too_large", "9000 tokens per minute"),
    ],
)
def test_each_limit_is_refused_in_its_own_words(
    gate: ClientGate, status: int, code: str, words: str
) -> None:
    standing = Standing(
        allowance=EVERYTHING,
        at_s=0.0,
        requests_left=0,
        requests_reset_ms=0,
        tokens_left=0,
        tokens_reset_ms=0,
    )

    body = refusal_body(ClientRefusal(gate=gate, retry_after_ms=100, standing=standing))

    assert (body.status, body.code, body.cause) == (status, code, gate.value)
    assert words in body.message
    assert body.retryable == (status == 429)
    assert body.retry_after_ms == (None if status == 413 else 1000)
