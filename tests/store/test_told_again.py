"""A server that forgot its last seconds is told of them once more; one that did not counts once."""

from collections.abc import AsyncIterator

import pytest

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.windows import MINUTE_BUCKETS, Limits
from cluster_gw.store.alone import FORGETS_S
from cluster_gw.store.settlement import RETRY_FOR_S
from tests.fakes.redis_server import RedisServer
from tests.store.clocks import NOW_MS
from tests.store.lone_worker import DONE, USED, LoneWorker, claim, target

pytestmark = pytest.mark.timeout(60)

RPM = target(Limits(rpm=20))


@pytest.fixture
async def worker(own_server: RedisServer) -> AsyncIterator[LoneWorker]:
    async with LoneWorker(own_server) as worker:
        yield worker


async def told(worker: LoneWorker, *names: str) -> None:
    """Settle so many requests, and see that Redis has them."""
    for name in names:
        await worker.use(name, RPM)
    assert await worker.admissions.drain(5.0) == 0


async def test_what_was_told_in_the_last_seconds_is_told_again_in_its_second(
    worker: LoneWorker,
) -> None:
    await told(worker, "a", "b")
    worker.clock.pass_s(2.0)

    await worker.lose()
    await worker.regain()

    counters = await worker.counters()
    assert (counters["hrs"], counters["hts"], counters["i"]) == (2, 2 * DONE.tokens, 0)
    assert counters[f"r{NOW_MS // 1000 % MINUTE_BUCKETS}"] == 2
    assert worker.alone.journal.replayed == 0


async def test_server_that_is_lost_again_soon_is_told_again_of_all_of_it(
    worker: LoneWorker,
) -> None:
    await told(worker, "a", "b")
    for _ in range(3):
        await worker.lose()
        await worker.regain()

    assert (await worker.counters())["hrs"] == 2
    assert worker.admissions.settlements.applied == 2 + 3 * 2


async def test_what_is_older_than_a_server_forgets_is_not_told_again(worker: LoneWorker) -> None:
    await told(worker, "a")
    worker.clock.pass_s(FORGETS_S + 1.0)
    await told(worker, "b")

    await worker.lose()
    await worker.regain()

    assert (await worker.counters())["hrs"] == 1


async def test_what_a_client_used_is_told_again(worker: LoneWorker) -> None:
    held = claim("a", Allowance(rpm=9))
    await worker.hold(held)
    worker.holds.settle(held, USED)
    assert await worker.admissions.drain(5.0) == 0

    await worker.lose()
    await worker.regain()

    counters = await worker.client_counters()
    assert (counters["rs"], counters["ts"], counters["i"]) == (1, USED.tokens, 0)


async def test_ids_that_may_be_forgotten_by_now_are_not_told_again(worker: LoneWorker) -> None:
    await told(worker, "a")
    await worker.lose()
    worker.clock.pass_s(RETRY_FOR_S)

    await worker.regain()

    assert not await worker.counters()


async def test_server_that_forgot_nothing_counts_once_and_hears_nothing_of_health(
    durable_server: RedisServer,
) -> None:
    async with LoneWorker(durable_server) as worker:
        await told(worker, "a", "b")

        await worker.lose()
        await worker.regain()
        await worker.lose()
        await worker.regain()

        counters = await worker.counters()
        assert (counters["hrs"], counters["hts"], counters["i"]) == (2, 2 * DONE.tokens, 0)
        assert worker.admissions.settlements.late == 0
