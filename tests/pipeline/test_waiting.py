"""The waiting room: first come, first served, one at a time, bounded."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from cluster_gw.core.limits.client_share import ClientShare
from cluster_gw.core.limits.windows import Gate
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Hints, Spent
from cluster_gw.pipeline.runtime import QueuePolicy, RoutingPolicy
from cluster_gw.pipeline.waiting import Refused, Turn, WaitingRoom
from cluster_gw.store.admission import Refusal
from cluster_gw.units import ClientId

FAR_S = 5.0  # longer than any test


def target(route: str, account: str = "k") -> Any:
    return SimpleNamespace(
        route=SimpleNamespace(id=route),
        key=SimpleNamespace(id=account),
        limits=SimpleNamespace(provider="p", account=account),
    )


def refusals(retry_after_ms: int, gate: Gate = Gate.CONCURRENCY) -> list[Refused]:
    refusal = Refusal(gate=gate, scope="model", retry_after_ms=retry_after_ms)
    return [(target("a"), refusal)]


class Queue:
    """Requests of one worker, by name, and in which order they were let through."""

    def __init__(self, max_depth: int = 10) -> None:
        self.room = WaitingRoom(Clock(monotonic_s=time.monotonic, wall_ms=lambda: 0))
        self.policy = RoutingPolicy(queue=QueuePolicy(max_depth=max_depth))
        self.passed: list[str] = []
        self.tasks: dict[str, asyncio.Task[Any]] = {}

    def turn(
        self, max_wait_ms: int = 5000, *targets: Any, share: ClientShare | None = None
    ) -> Turn:
        exchange: Any = SimpleNamespace(
            runtime=SimpleNamespace(policy=self.policy),
            hints=Hints(label="", max_wait_ms=max_wait_ms),
            share=share,
            started_s=time.monotonic(),
            deadline_s=float("inf"),
            spent=Spent(),
        )
        return Turn(self.room, exchange, targets or (target("a"), target("b", "l")))

    async def come(self, name: str, turn: Turn) -> None:
        """Start a request that asks when it is let through, and wait until it stands."""

        async def run() -> Any:
            try:
                refused = await turn.queue()
                if not refused:
                    self.passed.append(name)
                return refused
            finally:
                turn.leave()

        self.tasks[name] = asyncio.create_task(run())
        await asyncio.sleep(0)

    async def come_first(self, retry_after_ms: int = 4000) -> Turn:
        """A head that was refused and waits."""
        head = self.turn()

        async def run() -> bool:
            try:
                return await head.wait(refusals(retry_after_ms))
            finally:
                self.passed.append("head")

        self.tasks["head"] = asyncio.create_task(run())
        await asyncio.sleep(0)
        return head


@pytest.fixture
async def queue() -> AsyncIterator[Queue]:
    queue = Queue()
    yield queue
    for task in queue.tasks.values():
        task.cancel()
    await asyncio.gather(*queue.tasks.values(), return_exceptions=True)


async def settle(seconds: float = 0.02) -> None:
    await asyncio.sleep(seconds)


async def test_nobody_waits_where_nobody_waits(queue: Queue) -> None:
    assert await queue.turn().queue() == ()
    assert queue.room.lines == {}


async def test_later_requests_stand_behind_and_follow_in_order(queue: Queue) -> None:
    head = await queue.come_first()
    for name in "abc":
        await queue.come(name, queue.turn())

    await settle()
    assert (queue.passed, queue.room.depth) == ([], 4)
    queue.room.ring(target("a"))
    await settle()
    assert queue.passed == ["head"], "one is woken at a time"
    head.leave()
    await settle()

    assert queue.passed == ["head", "a", "b", "c"]
    assert (queue.room.depth, queue.room.lines) == (0, {})


async def test_who_waits_for_his_own_share_stands_in_nobody_elses_way(queue: Queue) -> None:
    share = ClientShare(client=ClientId("greedy"), ratio=0.5)
    head = queue.turn(share=share)
    queue.tasks["head"] = asyncio.create_task(head.wait(refusals(4000)))
    await asyncio.sleep(0)

    assert await queue.turn().queue() == ()
    await queue.come("his next", queue.turn(share=share))
    await settle()

    assert (queue.passed, queue.room.depth) == ([], 2)
    queue.tasks["head"].cancel()
    head.leave()
    await settle()
    assert queue.passed == ["his next"]


async def test_head_wakes_by_itself_when_its_target_opens(queue: Queue) -> None:
    await queue.come_first(retry_after_ms=30)
    await queue.come("a", queue.turn())

    await settle(0.06)

    assert queue.passed == ["head"]
    assert await queue.tasks["head"] is True


async def held_back(turn: Turn, wait_ms: int) -> bool:
    refusal = Refusal(gate=Gate.RPM, scope="model", retry_after_ms=wait_ms, is_held_back=True)
    full = Refusal(gate=Gate.RPD, scope="model", retry_after_ms=10_000)
    try:
        return await turn.wait([(target("a"), refusal), (target("b", "l"), full)])
    finally:
        turn.leave()


async def test_what_is_held_back_is_waited_for_where_nobody_waits(queue: Queue) -> None:
    turns = [queue.turn(0) for _ in range(3)]

    waits = await asyncio.gather(*(held_back(turn, 30) for turn in turns))

    assert waits == [True] * 3
    assert all(0.02 < turn.exchange.spent.waiting_s < FAR_S for turn in turns)

    assert not await turns[0].wait(refusals(30)), "only what is held back"


async def test_what_is_held_back_beyond_the_deadline_is_not_waited_for(queue: Queue) -> None:
    turn = queue.turn(0)
    turn.exchange.deadline_s = time.monotonic() + 0.02

    assert not await held_back(turn, 50)


async def test_newcomer_does_not_overtake_a_head_that_is_asking(queue: Queue) -> None:
    head = await queue.come_first()
    queue.room.ring(target("a"))
    await settle()

    await queue.come("late", queue.turn())
    await settle()
    assert queue.passed == ["head"]
    head.leave()
    await settle()

    assert queue.passed == ["head", "late"]


async def test_head_that_is_refused_again_stays_the_head(queue: Queue) -> None:
    head = await queue.come_first()
    await queue.come("a", queue.turn())
    queue.room.ring(target("a"))
    await settle()

    again = asyncio.create_task(head.wait(refusals(20)))
    await settle(0.05)

    assert await again is True
    assert queue.passed == ["head"]


async def test_settlement_while_the_head_is_asking_is_not_lost(queue: Queue) -> None:
    head = await queue.come_first()
    queue.room.ring(target("a"))
    await settle()
    queue.room.ring(target("a"))

    async with asyncio.timeout(1.0):
        assert await head.wait(refusals(4000))


@pytest.mark.parametrize(("account", "passed"), [("l", ["head"]), ("other", [])])
async def test_settlement_wakes_who_waits_for_the_same_account(
    queue: Queue, account: str, passed: list[str]
) -> None:
    await queue.come_first()

    queue.room.ring(target("some other model", account))
    await settle()

    assert queue.passed == passed


async def test_other_targets_have_a_line_of_their_own(queue: Queue) -> None:
    await queue.come_first()

    await queue.come("a", queue.turn(5000, target("b", "l")))

    assert queue.passed == ["a"]


async def test_request_that_may_not_wait_asks_at_once(queue: Queue) -> None:
    await queue.come_first()

    await queue.come("hasty", queue.turn(0))

    assert queue.passed == ["hasty"]


async def test_request_whose_wait_is_over_is_told_what_the_head_was_told(queue: Queue) -> None:
    await queue.come_first(retry_after_ms=10)
    queue.room.lines[next(iter(queue.room.lines))].opens_at_s = 0.0
    await queue.come("a", queue.turn(30))

    await settle(0.06)

    refused = await queue.tasks["a"]
    assert [refusal.gate for _, refusal in refused] == [Gate.CONCURRENCY]
    assert "a" not in queue.passed
    assert queue.room.depth == 1


async def test_request_does_not_stand_in_a_line_that_opens_too_late(queue: Queue) -> None:
    await queue.come_first(retry_after_ms=4000)

    assert len(await queue.turn(1000).queue()) == 1
    assert queue.room.depth == 1


async def test_full_room_refuses(queue: Queue) -> None:
    queue.policy = RoutingPolicy(queue=QueuePolicy(max_depth=1))
    await queue.come_first()

    assert len(await queue.turn().queue()) == 1
    assert not await queue.turn(5000, target("other")).wait(refusals(10))
    assert queue.room.depth == 1


@pytest.mark.parametrize(
    ("max_wait_ms", "refused"),
    [(0, refusals(1)), (100, refusals(200)), (5000, refusals(1, Gate.TOO_LARGE)), (5000, [])],
)
async def test_hopeless_wait_is_none(
    queue: Queue, max_wait_ms: int, refused: list[Refused]
) -> None:
    assert not await queue.turn(max_wait_ms).wait(refused)
    assert (queue.room.depth, queue.room.lines) == (0, {})


async def test_cancelled_waiter_leaves_and_the_others_keep_their_order(queue: Queue) -> None:
    head = await queue.come_first()
    for name in "abc":
        await queue.come(name, queue.turn())

    queue.tasks["b"].cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await queue.tasks["b"]
    assert queue.room.depth == 3
    head.leave()
    await settle()

    assert queue.passed == ["a", "c"]
    assert (queue.room.depth, queue.room.lines) == (0, {})


async def test_time_in_line_is_counted_as_waiting() -> None:
    queue = Queue()
    turn = queue.turn()

    await turn.wait(refusals(30))

    assert 0.02 < turn.exchange.spent.waiting_s < FAR_S
