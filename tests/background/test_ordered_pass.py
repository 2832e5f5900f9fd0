"""What an operator orders is checked once, by whoever has the role, as a usual pass would."""

from collections.abc import AsyncIterator, Callable

import pytest

from cluster_gw.core.limits.key_status import CheckPolicy
from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from tests.background.test_key_pass import (
    AT_ONCE,
    DISABLED,
    HEALTHY,
    INVALID,
    MINUTE_S,
    Worker,
    answer,
    listings,
    simulator,
)
from tests.fakes.waiting import until_soon
from tests.store.clocks import SharedClock

__all__ = ["simulator"]

OFF = CheckPolicy(enabled=False, spacing_ms=0)
Build = Callable[..., Worker]


@pytest.fixture
async def build(
    client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> AsyncIterator[Build]:
    built: list[Worker] = []

    def make(name: str = "w1", policy: CheckPolicy = AT_ONCE) -> Worker:
        built.append(Worker(client, simulator.base_url, clock, name=name, policy=policy))
        return built[-1]

    yield make
    for worker in built:
        await worker.close()


def counts(worker: Worker) -> list[tuple[int, int, int]]:
    """Of each order that this worker has done: valid, rejected, unknown."""
    return [(one.valid, one.rejected, one.unknown) for one in worker.served]


async def ordered(worker: Worker) -> list[str]:
    return [one.scope for one in (await worker.orders.look()).orders]


async def stay(worker: Worker, seconds: int) -> None:
    """Let time pass while a worker keeps the role."""
    for _ in range(seconds):
        worker.clock.pass_s(1)
        await worker.lead()


async def test_order_of_any_worker_is_done_once_by_the_one_with_the_role(
    build: Build, simulator: RunningSimulator
) -> None:
    asked, elected = build("asked"), build("elected")
    await elected.run()
    await asked.orders.order("*")

    await asked.look()
    await elected.look()
    await elected.look()

    assert listings(simulator) == 4, "two keys, of a pass a moment ago and of the order"
    assert counts(elected) == [(2, 0, 0)]
    assert asked.served == []
    assert await ordered(asked) == []
    last = (await asked.orders.look()).last
    assert last is not None
    assert last.ended_ms >= last.began_ms > 0


@pytest.mark.parametrize(("scope", "checked"), [("p", 2), ("p.two", 1), ("q", 0), ("p.three", 0)])
async def test_only_what_is_named_is_checked(
    build: Build, simulator: RunningSimulator, scope: str, checked: int
) -> None:
    worker = build()
    await worker.run()
    await worker.orders.order(scope)

    await worker.look()

    assert listings(simulator) - 2 == checked
    assert counts(worker) == [(checked, 0, 0)]
    assert await ordered(worker) == []


async def test_rejections_count_as_in_any_pass_and_a_disabled_key_is_asked_too(
    build: Build, simulator: RunningSimulator
) -> None:
    worker = build()
    await worker.lead()
    answer(simulator, 401)
    seen = []
    for _ in range(3):
        await worker.orders.order("p.one")
        await worker.look()
        seen.append((await worker.statuses())[0])
        await stay(worker, 1)
    simulator.provider.faults.clear()
    await worker.orders.order("p.one")

    await worker.look()

    assert seen == [INVALID, INVALID, DISABLED]
    assert (await worker.statuses())[0] is HEALTHY
    assert counts(worker) == [(0, 1, 0)] * 3 + [(1, 0, 0)]


async def test_provider_that_says_nothing_of_a_key_changes_nothing(
    build: Build, simulator: RunningSimulator
) -> None:
    worker = build()
    await worker.run()
    answer(simulator, 503)
    await worker.orders.order("*")

    await worker.look()

    assert await worker.statuses() == [HEALTHY, HEALTHY]
    assert counts(worker) == [(0, 0, 2)]


async def test_order_is_done_where_passes_are_switched_off(
    build: Build, simulator: RunningSimulator, clock: SharedClock
) -> None:
    worker = build(policy=OFF)
    await worker.lead()
    await worker.orders.order("p.two")

    await worker.look()
    clock.pass_s(1)
    await worker.look()

    assert listings(simulator) == 1
    assert counts(worker) == [(1, 0, 0)]


async def test_successor_asks_nobody_twice_and_ends_the_order(
    build: Build, simulator: RunningSimulator, clock: SharedClock
) -> None:
    first, second = build("first", CheckPolicy(spacing_ms=60_000)), build("second")
    await first.lead()
    await first.orders.order("*")
    await first.key_pass.look()
    await until_soon(lambda: listings(simulator) == 1)
    await first.booked.wait()
    clock.pass_s(10)

    await second.lead()
    await second.look()
    await first.look()

    assert listings(simulator) == 2
    assert first.served == []
    assert await ordered(second) == []
    assert await second.statuses() == [HEALTHY, HEALTHY]


async def test_what_is_ordered_anew_while_it_is_done_is_done_again(
    build: Build, simulator: RunningSimulator, clock: SharedClock
) -> None:
    worker = build(policy=CheckPolicy(spacing_ms=0))
    await worker.lead()
    await worker.orders.order("*")
    await worker.key_pass.look()
    clock.pass_s(0.5)
    assert (await worker.orders.order("*"))[1] is False, "somebody has begun"
    await worker.look()

    await worker.look()

    assert listings(simulator) == 4
    assert counts(worker) == [(2, 0, 0)] * 2


async def test_it_takes_the_place_of_a_pass_that_is_running_and_does_what_that_had_left(
    build: Build, simulator: RunningSimulator, clock: SharedClock
) -> None:
    worker = build(policy=CheckPolicy(spacing_ms=60_000))
    await worker.lead()
    await worker.key_pass.look()
    await stay(worker, 20)
    await worker.key_pass.look()
    await until_soon(lambda: listings(simulator) == 1)
    worker.policy = AT_ONCE
    await worker.orders.order("p.one")

    await worker.look()

    assert listings(simulator) == 3
    assert await worker.statuses() == [HEALTHY, HEALTHY]
    assert counts(worker) == [(1, 0, 0)], "the other key was only due"


async def test_check_that_cannot_be_booked_is_tried_again_later_and_not_each_second(
    build: Build, simulator: RunningSimulator, clock: SharedClock, client: RedisClient
) -> None:
    worker, statuses = build(policy=OFF), Keys("gw1").key_statuses()
    await worker.lead()
    await client.call("HSET", statuses, "p.one", "written by hand")
    await worker.orders.order("p.one")
    for _ in range(5):
        await worker.look()
        await stay(worker, 1)

    asked = listings(simulator)
    await client.call("HDEL", statuses, "p.one")
    await stay(worker, MINUTE_S)
    await worker.look()

    assert asked == 1
    assert listings(simulator) == 2
    assert counts(worker) == [(1, 0, 0)]
    assert await ordered(worker) == []


async def test_orders_nobody_can_read_do_not_stop_the_passes(
    build: Build, simulator: RunningSimulator, clock: SharedClock, client: RedisClient
) -> None:
    worker = build()
    await worker.lead()
    await client.call("HSET", Keys("gw1").check_orders(), "p", "soon")
    await worker.look()
    await stay(worker, 20)

    await worker.look()

    assert listings(simulator) == 2
    assert worker.served == []
