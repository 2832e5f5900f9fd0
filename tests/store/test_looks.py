"""What is kept in mind of windows, caps and clients, and when it is read anew."""

from collections.abc import AsyncIterator

import pytest

from cluster_gw.core.limits.usage import WindowUse
from cluster_gw.core.limits.windows import DAY_WIDTH_MS, Gate, Limits
from cluster_gw.core.routing.snapshot import Snapshot
from cluster_gw.store.looks import IDLE_S, LOOK_S, used_of_caps, used_of_client, used_of_window
from tests.fakes.redis_server import RedisServer
from tests.store.clocks import NOW_MS
from tests.store.lone_worker import WINDOW, LoneWorker, target

pytestmark = pytest.mark.timeout(60)

SECOND = NOW_MS // 1000
LATER_MS = NOW_MS + 70_000
CALLS = 2  # the window and the client


@pytest.fixture
async def worker(own_server: RedisServer) -> AsyncIterator[LoneWorker]:
    async with LoneWorker(own_server) as worker:
        yield worker


async def calls_of_a_look(worker: LoneWorker) -> int:
    before = worker.client.calls
    await worker.looks.look()
    return worker.client.calls - before


def test_minute_that_is_over_counts_nothing() -> None:
    numbers = (SECOND, 1, 10, 5, 50, NOW_MS // DAY_WIDTH_MS, 0, 7, 70, 2, 0)

    now, later = used_of_window(numbers, NOW_MS), used_of_window(numbers, LATER_MS)

    assert (now[Gate.RPM], now[Gate.TPM], now[Gate.RPD], now[Gate.CONCURRENCY]) == (5, 50, 7, 2)
    assert (later[Gate.RPM], later[Gate.TPM], later[Gate.RPD]) == (0, 0, 7)
    assert set(used_of_window((), NOW_MS).values()) == {0}


def test_month_of_a_client_ends() -> None:
    numbers = (SECOND, 1, 10, 5, 50, 202611, NOW_MS + 1000, 700, 70, 2, 0)

    assert used_of_client(numbers, NOW_MS)["monthly_tokens"] == 700
    assert used_of_client(numbers, LATER_MS) == {
        "rpm": 0,
        "tpm": 0,
        "concurrency": 2,
        "monthly_tokens": 0,
        "monthly_usd": 0,
    }


def test_day_of_caps_ends_before_its_month() -> None:
    numbers = (20_261_118, NOW_MS + 1000, 5, 5000, 202_611, NOW_MS + 90_000, 700, 0)

    now, later = used_of_caps(numbers, NOW_MS), used_of_caps(numbers, LATER_MS)

    assert list(now.values()) == [5, 5000, 700]
    assert list(later.values()) == [0, 0, 700]


async def test_idle_window_is_looked_at_seldom_and_a_busy_one_often(worker: LoneWorker) -> None:
    assert await calls_of_a_look(worker) == CALLS
    worker.clock.pass_s(LOOK_S + 0.1)
    assert await calls_of_a_look(worker) == CALLS - 1
    await worker.use("a", target(Limits(rpm=9)))
    assert await worker.admissions.drain(5.0) == 0
    worker.clock.pass_s(IDLE_S)
    assert await calls_of_a_look(worker) == CALLS
    worker.clock.pass_s(LOOK_S + 0.1)

    assert await calls_of_a_look(worker) == CALLS


async def test_window_of_a_snapshot_is_not_read(worker: LoneWorker) -> None:
    told = Snapshot(version=1, windows={WINDOW: WindowUse(requests_minute=4)})
    worker.looks.take_over(told, worker.clock.monotonic_s())

    assert await calls_of_a_look(worker) == CALLS - 1
    await worker.lose()

    assert await worker.take_all(target(Limits(rpm=10))) == 3


async def test_snapshot_from_before_the_hand_over_tells_nothing(worker: LoneWorker) -> None:
    built_at_s = worker.clock.monotonic_s()
    await worker.lose()
    await worker.regain()
    worker.looks.take_over(Snapshot(version=1, windows={WINDOW: WindowUse()}), built_at_s)
    await worker.lose()

    assert await worker.take_all(target(Limits(rpm=10))) == 0
