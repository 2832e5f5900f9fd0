import asyncio

import pytest

from cluster_gw.canonical.failure import FaultKind
from cluster_gw.pipeline.alarms import Alarms
from cluster_gw.pipeline.watchdog import Watchdog


async def test_a_passed_limit_ends_the_guarded_wait_and_is_named() -> None:
    loop = asyncio.get_running_loop()
    dog = Watchdog(Alarms(loop))
    dog.limit(loop.time() + 0.01, FaultKind.STALL)

    with dog:
        await asyncio.sleep(10)

    assert dog.fired is FaultKind.STALL


async def test_the_nearer_of_limit_and_cap_is_the_one_that_fires() -> None:
    loop = asyncio.get_running_loop()
    dog = Watchdog(Alarms(loop))
    dog.limit(loop.time() + 5, FaultKind.STALL)
    dog.cap(loop.time() + 0.01, FaultKind.DEADLINE)

    with dog:
        await asyncio.sleep(10)

    assert dog.fired is FaultKind.DEADLINE


async def test_a_limit_moved_later_inside_the_block_does_not_fire_early() -> None:
    loop = asyncio.get_running_loop()
    dog = Watchdog(Alarms(loop))
    dog.limit(loop.time() + 0.01, FaultKind.STALL)

    with dog:
        dog.limit(loop.time() + 5, FaultKind.STALL)
        await asyncio.sleep(0.05)

    assert dog.fired is None


async def test_a_limit_moved_earlier_inside_the_block_fires_at_the_new_time() -> None:
    loop = asyncio.get_running_loop()
    dog = Watchdog(Alarms(loop))
    dog.limit(loop.time() + 60, FaultKind.STALL)

    with dog:
        dog.limit(loop.time() + 0.01, FaultKind.PEEK)
        await asyncio.sleep(10)

    assert dog.fired is FaultKind.PEEK


async def test_work_that_ends_in_time_leaves_no_timer_and_no_cancellation() -> None:
    loop = asyncio.get_running_loop()
    dog = Watchdog(Alarms(loop))
    dog.limit(loop.time() + 0.02, FaultKind.STALL)

    with dog:
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)

    assert dog.fired is None


async def test_a_cancellation_from_elsewhere_passes_through() -> None:
    loop = asyncio.get_running_loop()
    entered = asyncio.Event()

    async def guarded() -> None:
        dog = Watchdog(Alarms(loop))
        dog.limit(loop.time() + 60, FaultKind.STALL)
        with dog:
            entered.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(guarded())
    await entered.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_from_elsewhere_wins_over_a_limit_that_fired_with_it() -> None:
    loop = asyncio.get_running_loop()
    dogs: list[Watchdog] = []

    async def guarded() -> None:
        dog = Watchdog(Alarms(loop))
        dogs.append(dog)
        dog.limit(loop.time() + 60, FaultKind.STALL)
        with dog:
            await asyncio.sleep(60)

    task = asyncio.create_task(guarded())
    await asyncio.sleep(0)
    dogs[0].limit(0, FaultKind.STALL)
    dogs[0].look()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_one_watchdog_guards_several_blocks_in_turn() -> None:
    loop = asyncio.get_running_loop()
    dog = Watchdog(Alarms(loop))
    dog.limit(loop.time() + 0.01, FaultKind.HEADERS_TIMEOUT)
    with dog:
        await asyncio.sleep(10)

    dog.limit(loop.time() + 5, FaultKind.STALL)
    with dog:
        await asyncio.sleep(0)

    assert dog.fired is None
