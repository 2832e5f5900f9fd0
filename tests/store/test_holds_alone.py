"""Clients' own limits while Redis is away."""

from collections.abc import AsyncIterator

import pytest

from cluster_gw.core.limits.allowance import Allowance, ClientGate
from cluster_gw.store.alone import AwayError, Mode
from cluster_gw.store.clients import ClientRefusal, Standing
from tests.fakes.redis_server import RedisServer
from tests.store.lone_worker import USED, LoneWorker, claim

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def server(durable_server: RedisServer) -> RedisServer:
    return durable_server


@pytest.fixture
async def worker(server: RedisServer) -> AsyncIterator[LoneWorker]:
    async with LoneWorker(server) as worker:
        yield worker


@pytest.mark.parametrize(
    ("allowance", "gate"),
    [
        (Allowance(rpm=4), ClientGate.RPM),
        (Allowance(tpm=400), ClientGate.TPM),
        (Allowance(concurrency=4), ClientGate.CONCURRENCY),
        (Allowance(monthly_tokens=400), ClientGate.MONTHLY_TOKENS),
        (Allowance(monthly_micro_usd=200), ClientGate.MONTHLY_USD),
    ],
)
async def test_client_has_half_of_what_was_left(
    worker: LoneWorker, allowance: Allowance, gate: ClientGate
) -> None:
    await worker.looks.look()
    await worker.lose()

    answers = [await worker.hold(claim(f"h{n}", allowance)) for n in range(3)]

    assert [type(one) for one in answers] == [Standing, Standing, ClientRefusal]
    assert isinstance(answers[2], ClientRefusal)
    assert answers[2].gate is gate


async def test_standing_tells_what_is_left_of_the_share(worker: LoneWorker) -> None:
    both = Allowance(rpm=10, tpm=1000)
    await worker.looks.look()
    await worker.lose()

    standing = await worker.hold(claim("a", both))

    assert isinstance(standing, Standing)
    assert (standing.requests_left, standing.tokens_left) == (4, 400)


async def test_hold_is_told_once_when_redis_is_back(worker: LoneWorker) -> None:
    allowance = Allowance(rpm=10, concurrency=8)
    await worker.looks.look()
    await worker.lose()
    ended, running = claim("a", allowance), claim("b", allowance)
    for one in (ended, running):
        assert isinstance(await worker.hold(one), Standing)
    worker.holds.settle(ended, USED)

    await worker.regain()
    during = await worker.client_counters()
    worker.holds.settle(running, USED)
    assert await worker.admissions.drain(5.0) == 0

    after = await worker.client_counters()
    assert (during["rs"], during["pt"], during["i"]) == (2, 60 + 20, 1)
    assert (after["rs"], after["pt"], after["i"]) == (2, 60, 0)


async def test_closed_holds_nothing(server: RedisServer) -> None:
    async with LoneWorker(server, Mode.CLOSED) as worker:
        await worker.lose()

        with pytest.raises(AwayError):
            await worker.hold(claim("a", Allowance(rpm=10)))
