"""A worker without Redis: what it lets in, and what Redis knows of it afterwards."""

from collections.abc import AsyncIterator

import pytest
from redis import Redis

from cluster_gw.core.limits.breaker import BreakerPolicy, Evidence
from cluster_gw.core.limits.cooldown import Cause, Cooldown
from cluster_gw.core.limits.windows import MINUTE_BUCKETS, Gate, Limits
from cluster_gw.errors import StoreLostError
from cluster_gw.store.admission import Lease, Outcome, Refusal, Settlement
from cluster_gw.store.alone import AwayError, Mode
from cluster_gw.store.journal import Journal
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import ComboId
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon
from tests.lua.calls import Admission
from tests.store.clocks import NOW_MS
from tests.store.lone_worker import DONE, WINDOW, LoneWorker, target

pytestmark = pytest.mark.timeout(60)

FAILED = Settlement(
    counts_request=True,
    tokens=0,
    outcome="transient",
    health=Outcome(evidence=Evidence.FAILURE, breaker=BreakerPolicy(threshold=2)),
)
LIMITED = Settlement(
    counts_request=True,
    tokens=0,
    outcome="rate_limit",
    health=Outcome(cooldown=Cooldown(reason=Cause.RATE_LIMIT, wait_ms=90_000)),
)


@pytest.fixture
def server(durable_server: RedisServer) -> RedisServer:
    return durable_server


@pytest.fixture
async def worker(server: RedisServer) -> AsyncIterator[LoneWorker]:
    async with LoneWorker(server) as worker:
        yield worker


async def test_half_of_what_the_last_admission_left_is_spent(worker: LoneWorker) -> None:
    rpm = target(Limits(rpm=12))
    for name in ("a", "b"):
        await worker.use(name, rpm)
    await worker.lose()

    assert await worker.take_all(rpm) == 5


async def test_share_is_divided_by_the_workers(worker: LoneWorker) -> None:
    worker.workers = 3
    rpm = target(Limits(rpm=60))
    await worker.use("a", rpm)
    await worker.lose()

    assert await worker.take_all(rpm) == 59 // 6


async def test_tokens_are_shared_and_settled_by_fact(worker: LoneWorker) -> None:
    tpm = target(Limits(tpm=1000))
    await worker.looks.look()
    await worker.lose()

    lease = await worker.granted("a", tpm)
    assert await worker.take_all(tpm) == 4  # the fifth hundred of 500
    worker.admissions.settle(lease, Settlement(counts_request=True, tokens=0, outcome="success"))

    assert await worker.take_all(tpm, "m") == 1


async def test_day_is_known_from_a_look_and_from_nothing_else(worker: LoneWorker) -> None:
    rpd = target(Limits(rpd=9))
    await worker.use("a", rpd)
    assert await worker.admissions.drain(5.0) == 0
    await worker.looks.look()
    await worker.lose()

    assert await worker.take_all(rpd) == 4


async def test_what_nobody_told_is_nothing(worker: LoneWorker) -> None:
    await worker.lose()

    for limits in (Limits(rpd=100), Limits(tpd=10_000), Limits(rpm=100), Limits(concurrency=9)):
        assert isinstance(await worker.reserve("a", target(limits)), Refusal)
    assert isinstance(await worker.reserve("b", target()), Lease)


async def test_minute_is_shared_anew_a_minute_later_and_a_day_is_not(worker: LoneWorker) -> None:
    both = target(Limits(rpm=10, rpd=20))
    await worker.looks.look()
    await worker.lose()
    assert await worker.take_all(both, "a") == 5

    worker.clock.pass_s(MINUTE_BUCKETS + 1)
    assert await worker.take_all(both, "b") == 5
    worker.clock.pass_s(MINUTE_BUCKETS + 1)

    refusal = await worker.reserve("c", both)
    assert isinstance(refusal, Refusal)
    assert (refusal.gate, refusal.scope) == (Gate.RPD, "model")


async def test_request_above_a_whole_limit_never_fits(worker: LoneWorker) -> None:
    await worker.looks.look()
    await worker.lose()

    refusal = await worker.reserve("a", target(Limits(tpm=99)))

    assert refusal == Refusal(gate=Gate.TOO_LARGE, scope="model", retry_after_ms=0)


async def test_what_was_let_in_is_told_once_in_its_second(worker: LoneWorker) -> None:
    rpm = target(Limits(rpm=20))
    await worker.use("before", rpm)
    assert await worker.admissions.drain(5.0) == 0
    await worker.lose()
    for name in ("a", "b"):
        await worker.use(name, rpm)
    let_in_at_s = (NOW_MS + 300) // 1000
    worker.clock.pass_s(30)
    await worker.use("c", rpm)

    await worker.regain()

    counters = await worker.counters()
    assert (counters["hrs"], counters["hts"], counters["i"]) == (4, 280, 0)
    assert counters[f"r{let_in_at_s % MINUTE_BUCKETS}"] == 3
    assert worker.alone.journal.replayed == 3
    assert worker.admissions.settlements.late == 3


async def test_what_is_older_than_a_minute_counts_for_the_day_only(worker: LoneWorker) -> None:
    await worker.lose()
    await worker.use("a", target())
    worker.clock.pass_s(MINUTE_BUCKETS + 1)

    await worker.regain()

    counters = await worker.counters()
    assert (counters["rs"], counters["hrs"], counters["hts"]) == (0, 1, 70)


async def test_request_that_runs_when_redis_is_back_holds_its_slot_there(
    worker: LoneWorker,
) -> None:
    await worker.lose()
    lease = await worker.granted("a", target())

    await worker.regain()
    during = await worker.counters()
    worker.admissions.settle(lease, DONE)
    assert await worker.admissions.drain(5.0) == 0

    after = await worker.counters()
    assert (during["i"], during["hrs"], during["hts"]) == (1, 1, 100)
    assert (after["i"], after["hrs"], after["hts"]) == (0, 1, 70)
    assert worker.admissions.settlements.late == 0


async def test_request_that_runs_when_redis_is_back_is_counted_even_above_the_limit(
    worker: LoneWorker,
) -> None:
    slots = target(Limits(concurrency=4))
    held = await worker.granted("a", slots)
    worker.clock.pass_s(1)
    await worker.looks.look()
    redis = Redis.from_url(worker.server.url, protocol=2, decode_responses=True)
    others, now_ms = Admission(redis, load_scripts()), worker.clock.server_now_ms()
    for name in "1234":  # these have ended, but nobody has told yet
        others.reserve(name, (WINDOW, Limits()), now_ms=now_ms)
    await worker.lose()
    worker.admissions.settle(held, DONE)
    lease = await worker.granted("b", slots)

    await worker.regain()
    during = await worker.counters()
    worker.admissions.settle(lease, DONE)
    assert await worker.admissions.drain(5.0) == 0

    assert (during["i"], (await worker.counters())["i"]) == (5, 4)


async def test_server_that_is_lost_twice_knows_everything_once(worker: LoneWorker) -> None:
    await worker.lose()
    first = await worker.use("a", target())
    assert first.is_local
    await worker.regain()
    await worker.lose()
    await worker.use("b", target())

    await worker.regain()

    counters = await worker.counters()
    assert (counters["hrs"], counters["hts"]) == (2, 140)


async def test_nothing_is_spent_twice_of_what_was_known_before(worker: LoneWorker) -> None:
    rpd = target(Limits(rpd=20))
    await worker.looks.look()
    await worker.lose()
    assert await worker.take_all(rpd) == 10
    await worker.regain()

    await worker.lose()  # before anything was heard

    assert await worker.take_all(rpd, "m") == 0


async def test_slot_of_a_lease_of_redis_is_the_workers_own_when_it_ends(
    worker: LoneWorker,
) -> None:
    few = target(Limits(concurrency=1))
    lease = await worker.granted("a", few)
    worker.clock.pass_s(1)
    await worker.looks.look()
    await worker.lose()
    assert isinstance(await worker.reserve("b", few), Refusal)

    worker.admissions.settle(lease, DONE)

    assert isinstance(await worker.reserve("c", few), Lease)
    assert isinstance(await worker.reserve("d", few), Refusal)


async def test_call_of_unknown_outcome_is_released_and_not_granted_twice(
    worker: LoneWorker,
) -> None:
    one = target(Limits(rpm=20))
    await worker.use("before", one)
    assert await worker.admissions.drain(5.0) == 0
    worker.server.freeze()
    with pytest.raises(StoreLostError):
        await worker.reserve("unknown", one)  # it waits in the server's socket
    worker.clock.pass_s(0.3)
    lease = await worker.granted("again", one)
    worker.admissions.settle(lease, DONE)

    await worker.regain()

    counters = await worker.counters()
    assert (counters["hrs"], counters["hts"], counters["i"]) == (2, 140, 0)


async def test_loss_shorter_than_the_grace_is_waited_out(worker: LoneWorker) -> None:
    worker.server.kill()
    await until_soon(lambda: bool(worker.alone.doubts))

    with pytest.raises(StoreLostError):
        await worker.reserve("a", target())
    assert not worker.admissions.is_alone(target())
    worker.server.start()
    await until_soon(lambda: not worker.alone.doubts)

    assert not (await worker.granted("b", target())).is_local
    assert worker.alone.grants == 0


async def test_server_that_takes_no_writes_counts_as_away(worker: LoneWorker) -> None:
    await worker.use("a", target())
    worker.server.command("CONFIG", "SET", "min-replicas-to-write", "1")
    with pytest.raises(StoreLostError, match="NOREPLICAS"):
        await worker.reserve("b", target())
    worker.clock.pass_s(0.3)

    assert (await worker.granted("c", target())).is_local
    worker.server.command("CONFIG", "SET", "min-replicas-to-write", "0")

    await until_soon(lambda: not worker.alone.doubts)
    assert not (await worker.granted("d", target())).is_local


async def test_target_that_rests_or_fails_is_left_alone(worker: LoneWorker) -> None:
    await worker.lose()
    for name in ("a", "b"):
        lease = await worker.granted(name, target())
        worker.admissions.settle(lease, FAILED)

    refusal = await worker.reserve("c", target())

    assert isinstance(refusal, Refusal)
    assert refusal.gate is Gate.BREAKER_OPEN
    worker.clock.pass_s(600)  # nobody may try it before Redis is back
    assert isinstance(await worker.reserve("d", target()), Refusal)


async def test_rest_ends_with_its_time(worker: LoneWorker) -> None:
    await worker.lose()
    lease = await worker.granted("a", target())
    worker.admissions.settle(lease, LIMITED)

    refusal = await worker.reserve("b", target())
    assert isinstance(refusal, Refusal)
    assert refusal.gate is Gate.COOLDOWN
    worker.clock.pass_s(90)

    assert isinstance(await worker.reserve("c", target()), Lease)


async def test_rest_that_redis_knew_holds_without_it(worker: LoneWorker) -> None:
    lease = await worker.granted("a", target())
    worker.admissions.settle(lease, LIMITED)
    assert await worker.admissions.drain(5.0) == 0
    assert isinstance(await worker.reserve("b", target()), Refusal)
    await worker.lose()
    worker.clock.pass_s(10)  # longer than a bar is believed while Redis can be asked

    refusal = await worker.reserve("c", target())

    assert isinstance(refusal, Refusal)
    assert refusal.gate is Gate.COOLDOWN


async def test_full_journal_lets_nothing_in(worker: LoneWorker) -> None:
    worker.alone.journal = Journal(max_entries=2)
    await worker.lose()
    await worker.use("a", target())
    await worker.granted("b", target())

    with pytest.raises(AwayError):
        await worker.reserve("c", target())


async def test_closed_lets_nothing_in(server: RedisServer) -> None:
    async with LoneWorker(server, Mode.CLOSED) as worker:
        await worker.lose()

        with pytest.raises(AwayError):
            await worker.reserve("a", target())
        with pytest.raises(AwayError):
            await worker.cursors.next(ComboId("auto"), "e")


async def test_worker_that_never_joined_the_others_lets_nothing_in(server: RedisServer) -> None:
    async with LoneWorker(server, workers=0) as worker:
        await worker.lose()

        with pytest.raises(AwayError):
            await worker.reserve("a", target())


async def test_open_divides_whole_limits_and_leaves_one_at_least(server: RedisServer) -> None:
    async with LoneWorker(server, Mode.OPEN, workers=0, spare=4) as worker:
        await worker.lose()

        assert await worker.take_all(target(Limits(rpm=2)), "a") == 1
        assert await worker.take_all(target(Limits(rpm=40)), "b") == 9


async def test_round_robin_goes_on_at_a_place_of_its_own(worker: LoneWorker) -> None:
    await worker.cursors.next(ComboId("auto"), "e")
    await worker.lose()

    places = [await worker.cursors.next(ComboId("auto"), "e") for _ in range(3)]

    assert places == [1, 2, 3]


async def test_release_of_an_unknown_admission_is_never_given_up(worker: LoneWorker) -> None:
    await worker.use("before", target())
    assert await worker.admissions.drain(5.0) == 0
    worker.server.freeze()
    with pytest.raises(StoreLostError):
        await worker.reserve("unknown", target())
    worker.clock.pass_s(2 * 3600)  # far longer than an id is remembered
    lost = worker.client.lost
    await until_soon(lambda: worker.client.lost > lost + 3)  # it is tried in vain

    await worker.regain()

    counters = await worker.counters()
    assert (counters["hrs"], counters["i"]) == (1, 0)
    assert worker.admissions.settlements.abandoned == 0


async def test_server_lost_while_the_others_hand_over_is_not_trusted(server: RedisServer) -> None:
    async with LoneWorker(server, hand_over_s=1.0) as worker:
        await worker.lose()
        await worker.use("a", target())
        server.start()
        await until_soon(lambda: worker.admissions.settlements.late == 1)
        server.kill()
        await until_soon(lambda: not worker.client.is_up)

        await worker.use("b", target())  # as before, without a wait
        assert worker.alone.journal.unwritten == 1
        await worker.regain()

        counters = await worker.counters()
        assert (counters["hrs"], counters["hts"]) == (2, 140)
