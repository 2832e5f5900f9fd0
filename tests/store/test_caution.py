"""A loss that some workers wait out while others spend their shares: no limit is exceeded by it."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cluster_gw.core.limits.allowance import Allowance, ClientGate
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.share import Span, kept_free
from cluster_gw.core.limits.windows import Gate, Limits
from cluster_gw.store.absence import EVERYWHERE
from cluster_gw.store.admission import Lease, Refusal
from cluster_gw.store.alone import HeldBackError
from cluster_gw.store.clients import ClientRefusal, Standing
from cluster_gw.store.lane import MissedError
from cluster_gw.store.ledger import Bound, Ledger, Unit
from cluster_gw.units import LeaseId
from tests.fakes.redis_masters import TwoMasters
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.fakes.relay import Relay
from tests.fakes.waiting import until_soon
from tests.store.lone_worker import DONE, KEYS, USED, LoneWorker, claim, target

pytestmark = pytest.mark.timeout(60)

CAUTION_S = 1.0
NOTICED_S = 0.15  # longer than a blip, shorter than the grace
AWAY_S = 0.3
RPM = target(Limits(rpm=20))
HUGE = Demand(input_tokens=500, output_tokens=300)


@pytest.fixture
def server(durable_server: RedisServer) -> RedisServer:
    return durable_server


@pytest.fixture
async def quick(server: RedisServer) -> AsyncIterator[LoneWorker]:
    """One of two workers."""
    async with LoneWorker(server, workers=2, hand_over_s=CAUTION_S) as worker:
        yield worker


async def waits_out(worker: LoneWorker, lasts_s: float = NOTICED_S) -> None:
    """Lose the server and find it again within the grace."""
    worker.server.kill()
    await until_soon(lambda: bool(worker.alone.doubts))
    worker.clock.pass_s(lasts_s)
    worker.server.start()
    await until_soon(lambda: all(doubt.is_back for doubt in worker.alone.doubts.values()))


async def test_worker_that_waited_a_loss_out_leaves_room_for_what_others_spent(
    server: RedisServer, quick: LoneWorker
) -> None:
    with Relay(server.path) as relay:
        async with LoneWorker(None, workers=2, url=relay.url, hand_over_s=CAUTION_S) as slow:
            for name in range(10):
                await quick.use(f"before{name}", RPM)
            await slow.looks.look()
            relay.is_cut = True
            relay.drop()
            await waits_out(quick)
            await until_soon(lambda: bool(slow.alone.doubts))
            slow.clock.pass_s(AWAY_S)

            assert await slow.take_all(RPM, "slow") == 2  # half of 10, by two workers
            assert await quick.take_all(RPM, "quick") == 2
            relay.is_cut = False
            relay.drop()
            await until_soon(lambda: not slow.alone.journal.unregistered(KEYS.workers()))
            await until_soon(lambda: not quick.alone.doubts)

            assert await quick.take_all(RPM, "later") == 20 - 10 - 2 - 2


async def test_what_is_held_back_is_not_remembered_as_refused(quick: LoneWorker) -> None:
    for name in range(10):
        await quick.use(f"before{name}", RPM)
    await waits_out(quick)
    assert await quick.take_all(RPM, "share") == 2

    held_back = await quick.reserve("held", RPM)

    assert isinstance(held_back, Refusal)
    assert (held_back.gate, held_back.is_held_back) == (Gate.RPM, True)
    assert 0 < held_back.retry_after_ms <= CAUTION_S * 1000
    assert not quick.admissions.is_refused(RPM, 0)
    await until_soon(lambda: not quick.alone.doubts)
    assert isinstance(await quick.reserve("now", RPM), Lease)


async def test_plenty_is_served_as_ever(quick: LoneWorker) -> None:
    await waits_out(quick)

    leases = [await quick.granted(f"l{number}", RPM) for number in range(10)]

    assert quick.alone.doubts
    assert not any(lease.is_local for lease in leases)


async def test_blip_is_no_reason_for_caution(quick: LoneWorker) -> None:
    for name in range(15):
        await quick.use(f"before{name}", RPM)
    await waits_out(quick, 0.0)

    assert not quick.alone.doubts
    assert await quick.take_all(RPM) == 5


async def test_worker_that_knows_of_no_others_keeps_half_free(quick: LoneWorker) -> None:
    quick.workers = 0
    await waits_out(quick)

    assert await quick.take_all(RPM) == 10


async def test_request_too_large_for_what_is_kept_free_is_held_back_and_others_refused(
    quick: LoneWorker,
) -> None:
    tokens = target(Limits(tpm=1000))
    await quick.granted("before", tokens)
    await waits_out(quick)

    held_back = await quick.reserve("a", tokens, HUGE)
    too_large = await quick.reserve("b", target(Limits(tpm=700)), HUGE)

    assert isinstance(held_back, Refusal)
    assert (held_back.gate, held_back.is_held_back) == (Gate.TPM, True)
    assert isinstance(too_large, Refusal)
    assert (too_large.gate, too_large.is_held_back) == (Gate.TOO_LARGE, False)


async def test_slot_of_the_own_share_is_free_again_when_its_request_ends(
    quick: LoneWorker,
) -> None:
    slots = target(Limits(concurrency=4))
    await quick.granted("before", slots)
    await quick.granted("too", slots)
    await quick.looks.look()
    quick.workers = 1
    await waits_out(quick)

    first = await quick.granted("a", slots)
    assert isinstance(await quick.reserve("b", slots), Refusal)
    quick.admissions.settle(first, DONE)
    assert await quick.admissions.drain(5.0) == 0

    assert isinstance(await quick.reserve("c", slots), Lease)


async def test_part_of_the_share_that_redis_refuses_comes_back(quick: LoneWorker) -> None:
    wide = target(Limits(rpm=8), key=Limits(rpm=1))
    quick.workers = 1
    await quick.use("before", target(Limits(rpm=8)))
    await quick.looks.look()
    await waits_out(quick)

    for number in range(5):
        assert isinstance(await quick.reserve(f"r{number}", wide), Refusal | Lease)

    assert len(quick.alone.ledger._pledged) <= 1


async def test_lease_that_a_frozen_server_gave_to_a_call_from_before_the_loss_goes_back(
    quick: LoneWorker,
) -> None:
    await quick.use("before", RPM)
    assert await quick.admissions.drain(5.0) == 0
    quick.server.freeze()
    waiting = asyncio.create_task(quick.reserve("a", RPM))
    await until_soon(lambda: quick.client.pending > 0)
    quick.alone.note(KEYS.workers(), MissedError("another call was not answered"))
    assert quick.admissions.is_alone(RPM)

    quick.server.thaw()
    with pytest.raises(HeldBackError):
        await waiting
    assert await quick.admissions.drain(5.0) == 0

    counters = await quick.counters()
    assert (counters["hrs"], counters["i"]) == (1, 0)
    assert isinstance(await quick.reserve("again", RPM), Lease)


async def test_hold_that_a_frozen_server_gave_to_a_call_from_before_the_loss_is_undone(
    quick: LoneWorker,
) -> None:
    allowance = Allowance(rpm=20)
    await quick.hold(claim("before", allowance))
    quick.server.freeze()
    held = claim("a", allowance)
    waiting = asyncio.create_task(quick.hold(held))
    await until_soon(lambda: quick.client.pending > 0)
    quick.alone.note(KEYS.workers(), MissedError("another call was not answered"))
    assert quick.admissions.is_alone(RPM)

    quick.server.thaw()
    with pytest.raises(HeldBackError):
        await waiting
    assert await quick.admissions.drain(5.0) == 0
    standing = await quick.hold(held)
    quick.holds.settle(held, USED)
    assert await quick.admissions.drain(5.0) == 0

    assert isinstance(standing, Standing)
    assert standing.requests_left == 18
    assert quick.admissions.settlements.late == 0


async def test_call_that_waits_long_is_a_reason_for_caution_but_not_again_and_again(
    quick: LoneWorker,
) -> None:
    await quick.use("before", RPM)
    assert await quick.admissions.drain(5.0) == 0
    quick.server.freeze()
    waiting = asyncio.create_task(quick.reserve("a", RPM))
    await until_soon(lambda: bool(quick.alone.doubts))
    assert not waiting.done(), "it is not lost yet"

    quick.server.thaw()
    with pytest.raises(HeldBackError):
        await waiting
    await until_soon(lambda: not quick.alone.doubts)

    absence = quick.alone.absence
    for passed_s, is_cautious in ((5.0, False), (9.0, False), (11.0, True)):
        quick.clock.pass_s(passed_s)
        absence._slow()
        assert bool(quick.alone.doubts) is is_cautious


async def test_client_is_held_back_by_what_others_may_have_spent_and_told_what_is_left(
    quick: LoneWorker,
) -> None:
    allowance = Allowance(rpm=20, concurrency=20)
    for number in range(10):
        held = claim(f"before{number}", allowance)
        await quick.hold(held)
        quick.holds.settle(held, USED)
    await quick.looks.look()  # a hold's reply tells nothing of requests at a time
    await waits_out(quick)

    standings = [await quick.hold(claim(f"h{number}", allowance)) for number in range(2)]
    with pytest.raises(HeldBackError) as held_back:
        await quick.hold(claim("h2", allowance))
    await asyncio.sleep(held_back.value.wait_s)
    await until_soon(lambda: not quick.alone.doubts)
    later = [await quick.hold(claim(f"l{number}", allowance)) for number in range(9)]

    assert [one.requests_left for one in standings if isinstance(one, Standing)] == [9, 8]
    assert [type(one) for one in later] == [Standing] * 8 + [ClientRefusal]
    assert isinstance(later[-1], ClientRefusal)
    assert later[-1].gate is ClientGate.RPM


async def test_client_that_is_let_in_by_what_is_kept_free_is_told_all_that_is_left(
    quick: LoneWorker,
) -> None:
    quick.workers = 0
    await waits_out(quick)

    standing = await quick.hold(claim("a", Allowance(rpm=20, tpm=1000)))

    assert isinstance(standing, Standing)
    assert (standing.requests_left, standing.tokens_left) == (19, 900)


async def test_part_of_a_cluster_that_nobody_asked_for_meanwhile_is_asked_with_caution() -> None:
    binary = needed_redis()
    with TwoMasters(binary) as masters:
        async with LoneWorker(None, workers=0, url=masters.url, hand_over_s=CAUTION_S) as worker:
            assert isinstance(await worker.reserve("before", RPM), Lease)
            assert not worker.alone.doubts
            worker.client.on_change(lambda is_up: worker.clock.pass_s(0.0 if is_up else NOTICED_S))
            masters.low.call("CLIENT", "KILL", "TYPE", "normal")
            masters.high.call("CLIENT", "KILL", "TYPE", "normal")
            await until_soon(lambda: EVERYWHERE in worker.alone.doubts)

            assert await worker.take_all(RPM) == 9
            await until_soon(lambda: not worker.alone.doubts)
            assert await worker.take_all(RPM, "later") == 10


class Member(msgspec.Struct):
    """One worker of a fleet, and what it has not told."""

    ledger: Ledger
    is_away: bool
    untold: int = 0


@given(
    limit=st.integers(0, 60),
    used=st.integers(0, 60),
    away=st.lists(st.booleans(), min_size=1, max_size=5),
    steps=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=150),
)
@example(limit=20, used=10, away=[True, False], steps=[(0, False)] * 9 + [(1, False)] * 9)
def test_no_order_of_asking_and_telling_exceeds_a_limit(
    limit: int, used: int, away: list[bool], steps: list[tuple[int, bool]]
) -> None:
    """Some are away and spend, some have waited the loss out; nobody is trusted before all told."""
    used = min(used, limit)
    fleet, counted = [Member(Ledger(is_open=False), is_away) for is_away in away], used
    for member in fleet:
        member.ledger.learn("w", {"rpm": used}, 0.0)
    bounds, workers = [Bound("w", "rpm", Span.MINUTE, limit, 1, Unit.REQUESTS)], len(fleet)
    take = partial(Ledger.take, bounds=bounds, workers=workers, lost_at_s=0.0, now_s=1.0)
    pledge = partial(Ledger.pledge, bounds=bounds, workers=workers, lost_at_s=0.0, now_s=1.0)
    for number, (who, tells) in enumerate(steps):
        member, lease = fleet[who % len(fleet)], LeaseId(str(number))
        if member.is_away and tells:
            counted, member.untold, member.is_away = counted + member.untold, 0, False
        elif member.is_away:
            member.untold += take(member.ledger, lease) is None
        else:
            is_pledged = pledge(member.ledger, lease)
            room = limit if is_pledged else limit - kept_free(limit, workers)
            counted += counted < room
        assert counted + sum(one.untold for one in fleet) <= limit
