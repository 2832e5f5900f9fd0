"""A client's share of a key: windows more in the plan of a target, for that client only."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import msgspec
import pytest
from hypothesis import given

from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.client_share import ClientShare
from cluster_gw.core.limits.windows import Gate, Limits
from cluster_gw.store.admission import Lease, Refusal, Settlement, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.looks import Looks
from cluster_gw.store.membership import DeadWorker
from cluster_gw.store.plan import Plans
from cluster_gw.store.reaping import Reaping, Sweep
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import ClientId
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon
from tests.lua.window_fields import present
from tests.store.clocks import NOW_MS
from tests.store.lone_worker import KEYS, WINDOW, LoneWorker, target
from tests.store.test_keys import TEXT

pytestmark = pytest.mark.timeout(60)

HALF = ClientShare(client=ClientId("app"), ratio=0.5)
DEAD = [DeadWorker(id="w1", beat_ms=NOW_MS)]
MINE = f"{WINDOW}:app"


def shared(chosen: TargetLimits, share: ClientShare = HALF) -> TargetLimits:
    return msgspec.structs.replace(chosen, share=share)


@pytest.fixture
def server(durable_server: RedisServer) -> RedisServer:
    return durable_server


@pytest.fixture
async def worker(server: RedisServer) -> AsyncIterator[LoneWorker]:
    async with LoneWorker(server) as worker:
        yield worker


async def minute(worker: LoneWorker, window: str) -> tuple[int, int, int]:
    """Requests and tokens of the minute, and leases in flight."""
    text = await worker.client.call("HGET", window, "now")
    now = present({"now": text.decode()})
    return now["rs"], now["ts"], now["i"]


def test_windows_of_a_share_come_last_and_only_where_there_is_something_to_divide(
    keys: Keys, scripts: Scripts
) -> None:
    whole = msgspec.structs.replace(
        target(Limits(rpm=5, tpd=9), key=Limits(concurrency=4)), account_limits=Limits(rpd=7)
    )

    plan = Plans(keys, scripts).of(shared(whole))

    slot = "gw1:w:{p.acc}"
    assert plan.windows == (
        *(f"{slot}:k:m", f"{slot}:k:_all", f"{slot}:_acct"),
        *(f"{slot}:k:m:app", f"{slot}:_acct:app"),
    )
    assert plan.scopes == ("model", "key", "account", "client_share", "client_share")
    assert plan.limits[15:] == (2, -1, -1, 4, -1, -1, 3, -1, -1, -1)
    assert plan.days == (-1, 9, -1, -1, 7, -1, -1, -1, -1, -1)
    assert plan.keys[3:] == plan.windows


def test_a_cap_of_the_minute_is_divided_like_the_keys_own(keys: Keys, scripts: Scripts) -> None:
    capped = msgspec.structs.replace(target(), caps=Caps(rpm=6))

    plan = Plans(keys, scripts).of(shared(capped))

    assert plan.windows[1:] == ("gw1:w:{p.acc}:k:_all", "gw1:w:{p.acc}:k:_all:app")
    assert plan.limits[10] == 3
    assert plan.gate(Gate.RPM, 2) is Gate.PROVIDER_MINUTE_CAP
    assert plan.gate(Gate.RPM, 3) is Gate.RPM


def test_who_has_no_share_has_the_plan_he_always_had(keys: Keys, scripts: Scripts) -> None:
    plans, whole = Plans(keys, scripts), target(Limits(rpm=5))

    assert plans.of(whole).windows == (WINDOW,)
    assert plans.of(shared(target(Limits(concurrency=5)))).windows == (WINDOW,)
    assert [name for _, name, _ in plans.windows_of(shared(whole))] == [WINDOW, MINE]


@given(one=TEXT, other=TEXT, key=TEXT, model=TEXT)
def test_nothing_else_has_the_name_of_a_share(one: str, other: str, key: str, model: str) -> None:
    windows = (
        KEYS.model_window("{s}", key, model),
        KEYS.key_window("{s}", key),
        KEYS.account_window("{s}"),
    )
    mine = {KEYS.client_share(window, one) for window in windows}

    assert len({*mine, *windows}) == 6
    assert (mine & {KEYS.client_share(window, other) for window in windows} == mine) == (
        one == other
    )


async def test_share_is_refused_before_the_key_is_and_leaves_the_rest_to_others(
    worker: LoneWorker,
) -> None:
    whole = target(Limits(rpm=11))

    assert await worker.take_all(shared(whole), "greedy") == 5
    refusal = await worker.reserve("more", shared(whole))
    assert await worker.take_all(whole, "other") == 6

    assert isinstance(refusal, Refusal)
    assert (refusal.gate, refusal.scope) == (Gate.RPM, "client_share")
    assert 55_000 <= refusal.retry_after_ms <= 62_000


async def test_it_is_taken_with_the_rest_or_not_at_all(worker: LoneWorker) -> None:
    whole = target(Limits(rpm=4))
    await worker.granted("other1", whole)
    for name in ("other2", "other3", "other4"):
        await worker.granted(name, whole)

    assert isinstance(await worker.reserve("mine", shared(whole)), Refusal)

    assert await worker.client.call("EXISTS", MINE) == 0


async def test_it_is_settled_by_fact_with_the_window_it_is_a_part_of(worker: LoneWorker) -> None:
    whole = shared(target(Limits(rpm=10, tpm=1000)))
    for name in ("a", "b"):
        await worker.use(name, whole)
    undone = await worker.granted("c", whole)
    worker.admissions.settle(
        undone, Settlement(counts_request=False, tokens=0, outcome="undispatched")
    )
    assert await worker.admissions.drain(5.0) == 0

    assert await minute(worker, MINE) == await minute(worker, WINDOW) == (2, 140, 0)


async def test_many_at_once_get_no_more(worker: LoneWorker) -> None:
    whole = target(Limits(rpm=20))

    answers = await asyncio.gather(
        *(worker.reserve(f"mine{n}", shared(whole)) for n in range(30)),
        *(worker.reserve(f"other{n}", whole) for n in range(10)),
    )

    assert sum(isinstance(one, Lease) for one in answers[:30]) == 10
    assert sum(isinstance(one, Lease) for one in answers[30:]) == 10


async def test_another_share_holds_for_the_same_counter_at_once(worker: LoneWorker) -> None:
    whole = target(Limits(rpm=20))
    before = await worker.granted("before", shared(whole))
    assert await worker.take_all(shared(whole), "a") == 9

    more = shared(whole, ClientShare(client=HALF.client, ratio=0.75))
    worker.clock.pass_s(1.5)  # what was refused is asked again
    assert await worker.take_all(more, "b") == 5
    worker.admissions.settle(before, Settlement(counts_request=True, tokens=7, outcome="success"))
    assert await worker.admissions.drain(5.0) == 0

    assert (await minute(worker, MINE))[0] == 15


async def test_slots_in_it_are_freed_when_their_worker_is_dead(
    worker: LoneWorker, client: RedisClient, scripts: Scripts
) -> None:
    whole = target(Limits(rpm=20))
    await worker.granted("a", shared(whole))
    reaping = Reaping(worker.client, scripts, KEYS, server_now_ms=worker.clock.server_now_ms)

    sweep = await reaping.sweep(
        DEAD, [whole, shared(whole)], valid_until_ms=worker.clock.server_now_ms()
    )

    assert sweep == Sweep(leases=1, is_whole=True)
    assert (await minute(worker, MINE))[2] == (await minute(worker, WINDOW))[2] == 0


async def test_workers_without_redis_spend_no_more_than_the_share_together(
    server: RedisServer,
) -> None:
    whole = target(Limits(rpm=60))
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(LoneWorker(server, workers=3)) for _ in range(3)]
        for number, one in enumerate(workers):
            await one.use(f"greedy{number}", shared(whole))
            await one.use(f"other{number}", whole)
            assert await one.admissions.drain(5.0) == 0
            await looks_of(one).look()
        for one in workers[::-1]:
            await one.lose() if one.server.is_running else await notice(one)

        greedy = [await one.take_all(shared(whole), f"g{n}") for n, one in enumerate(workers)]
        other = [await one.take_all(whole, f"o{n}") for n, one in enumerate(workers)]

    assert greedy == [(30 - 3) // 6] * 3
    assert all(taken > 0 for taken in other)
    assert sum(greedy) + 3 <= 30
    assert sum(greedy) + sum(other) + 6 <= 60


async def test_share_nobody_told_of_is_nothing_without_redis(worker: LoneWorker) -> None:
    whole = target(Limits(rpm=60))
    await worker.looks.look()
    await worker.lose()

    refusal = await worker.reserve("mine", shared(whole))

    assert isinstance(refusal, Refusal)
    assert refusal.scope == "client_share"
    assert await worker.take_all(whole) == 30


async def test_what_was_let_in_without_redis_is_counted_in_the_share_once(
    worker: LoneWorker,
) -> None:
    whole = shared(target(Limits(rpm=60)))
    await worker.use("before", whole)
    assert await worker.admissions.drain(5.0) == 0
    await looks_of(worker).look()
    await worker.lose()
    running = await worker.granted("running", whole)
    for name in ("a", "b"):
        await worker.use(name, whole)

    await worker.regain()
    worker.admissions.settle(running, Settlement(counts_request=True, tokens=9, outcome="success"))
    assert await worker.admissions.drain(5.0) == 0

    assert await minute(worker, MINE) == await minute(worker, WINDOW) == (4, 219, 0)


async def test_unreadable_share_refuses_its_client_and_nobody_else(worker: LoneWorker) -> None:
    whole = target(Limits(rpm=60))
    await worker.client.call("HSET", MINE, "now", "written by hand")

    refusal = await worker.reserve("mine", shared(whole))

    assert isinstance(refusal, Refusal)
    assert refusal.gate is Gate.RECORD_UNREADABLE
    assert isinstance(await worker.reserve("other", whole), Lease)


def looks_of(worker: LoneWorker) -> Looks:
    """Looks at the window and at the client's share of it."""
    return Looks(
        worker.client,
        worker.alone,
        windows=lambda: [WINDOW, MINE],
        caps=list,
        clients=list,
        server_ms=lambda: float(worker.clock.server_now_ms()),
    )


async def notice(worker: LoneWorker) -> None:
    """The server is dead already: wait until this worker knows, and let the grace pass."""
    await until_soon(lambda: bool(worker.alone.doubts))
    worker.clock.pass_s(0.3)
