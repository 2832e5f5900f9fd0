"""What is kept of conversations never holds up a request, and never takes more than its budget."""

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.store.client import RedisClient
from cluster_gw.store.sealing import Unsealed
from cluster_gw.store.session_memory import (
    OVERHEAD_BYTES,
    READ_S,
    ByteMeter,
    Record,
    Result,
    SessionMemory,
)
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon
from tests.store.clocks import ManualClock

RECORD = Record(name="gw1:ses:app:{s}:t:1", kind="reasoning", ttl_ms=60_000)
LONGEST_S = 0.5  # the machine has other work; a call to this server would wait 0.7 s


def memory_of(client: RedisClient, clock: ManualClock, *, read_s: float = 5.0) -> SessionMemory:
    return SessionMemory(client, Unsealed(), clock.monotonic_s, read_s=read_s)


def keep(memory: SessionMemory, value: bytes = b"{}", budget_bytes: float = 1e9) -> None:
    memory.keep(RECORD, value, most_bytes=1000, budget_bytes=budget_bytes)


async def test_what_is_kept_is_found_and_lives_on_when_it_is_read(
    client: RedisClient, redis_server: RedisServer, clock: ManualClock
) -> None:
    memory = memory_of(client, clock)
    keep(memory, b"thought")
    redis_server.command("PING")
    assert await memory.find([RECORD]) == [b"thought"]
    redis_server.command("PEXPIRE", RECORD.name, "5000")

    assert await memory.find([RECORD, RECORD]) == [b"thought", b"thought"]

    left_ms = int(redis_server.command("PTTL", RECORD.name).strip(b":\r\n"))
    assert 5000 < left_ms <= 60_000
    assert memory.counts[("reasoning", Result.FOUND)] == 3
    assert memory.counts[("reasoning", Result.KEPT)] == 1


async def test_nothing_is_found_where_nothing_is(client: RedisClient, clock: ManualClock) -> None:
    memory = memory_of(client, clock)

    assert await memory.find([RECORD]) == [None]
    assert memory.counts == {("reasoning", Result.MISSING): 1}


async def test_a_frozen_server_holds_up_one_read_and_then_none(
    own_server: RedisServer, clock: ManualClock
) -> None:
    client = RedisClient(own_server.url, prefix="gw1")
    await client.start(5.0)
    memory = memory_of(client, clock, read_s=READ_S)
    own_server.freeze()
    try:
        started_s = time.perf_counter()
        assert await memory.find([RECORD] * 3) == [None] * 3
        first_s = time.perf_counter() - started_s
        assert await memory.find([RECORD]) == [None]
        second_s = time.perf_counter() - started_s - first_s
    finally:
        own_server.thaw()
    clock.passed_s += 1.01
    await until_soon(lambda: not client.pending)
    later = await memory.find([RECORD], 5.0)
    await client.close()

    assert first_s < LONGEST_S
    assert second_s < first_s
    assert memory.counts[("reasoning", Result.LOST)] == 4
    assert later == [None]
    assert memory.counts[("reasoning", Result.MISSING)] == 1


async def test_a_loop_that_was_held_up_reads_what_has_arrived_before_it_gives_up(
    client: RedisClient, redis_server: RedisServer, clock: ManualClock
) -> None:
    redis_server.command("SET", RECORD.name, "thought")
    memory = memory_of(client, clock, read_s=READ_S)
    asked = memory.ask(RECORD)
    await asyncio.sleep(0)  # the question leaves

    time.sleep(2 * READ_S)  # noqa: ASYNC251 - what is shown is a loop that does not turn

    assert await memory.told(RECORD, asked) == b"thought"


async def test_without_a_server_reads_and_writes_are_lost_at_once(clock: ManualClock) -> None:
    client = RedisClient("redis://127.0.0.1:1/0", prefix="gw1")
    memory = memory_of(client, clock)

    keep(memory)
    found = await memory.find([RECORD])
    await asyncio.sleep(0)
    await client.close()

    assert found == [None]
    assert memory.counts == {("reasoning", Result.LOST): 2}


async def test_a_record_of_another_type_is_told_of_and_slows_nothing(
    client: RedisClient, redis_server: RedisServer, clock: ManualClock
) -> None:
    told: list[str] = []
    client.unreadable.listen(told.extend)
    redis_server.command("HSET", RECORD.name, "a", "b")
    memory = memory_of(client, clock)

    assert await memory.find([RECORD]) == [None]

    assert told == [RECORD.name]
    assert not memory.is_resting


@pytest.mark.parametrize(
    ("size", "budget_bytes", "result"),
    [
        (1000, 1e9, Result.KEPT),
        (1001, 1e9, Result.TOO_LARGE),
        (1000, 2 * (1000 + OVERHEAD_BYTES), Result.KEPT),
        (1000, 2 * (1000 + OVERHEAD_BYTES) - 2, Result.OVER_BUDGET),
    ],
)
async def test_a_value_has_a_bound_and_all_of_them_together_too(
    size: int, budget_bytes: float, result: Result, client: RedisClient, clock: ManualClock
) -> None:
    memory = memory_of(client, clock)

    keep(memory, b"x" * size, budget_bytes)

    await until_soon(lambda: ("reasoning", result) in memory.counts)


@given(
    writes=st.lists(st.tuples(st.floats(0, 40), st.integers(1, 400)), max_size=40),
    most=st.integers(1, 2000),
)
def test_no_more_bytes_live_at_once_than_the_budget(
    writes: list[tuple[float, int]], most: int
) -> None:
    meter, ttl_s, now_s, living = ByteMeter(), 60.0, 0.0, list[tuple[float, int]]()
    meter.most_bytes = most
    for pause_s, size in writes:
        now_s += pause_s
        living = [(at_s, kept) for at_s, kept in living if at_s > now_s - ttl_s]
        if meter.passes(size, ttl_s, now_s):
            living.append((now_s, size))

        assert sum(kept for _, kept in living) <= most * (1 + 1e-9)


def test_one_client_never_keeps_another_out() -> None:
    meter, ttl_s = ByteMeter(), 60.0
    meter.most_bytes = 8000.0

    def kept(client: str, now_s: float) -> int:
        return sum(meter.passes(100, ttl_s, now_s, client) for _ in range(100))

    alone = kept("greedy", 0.0)
    first, again = kept("late", 0.0), kept("greedy", 0.0)
    both = [(kept("greedy", at_s), kept("late", at_s)) for at_s in (10.0, 20.0, 30.0)]

    assert alone == 4000 // 100, "who is alone has all of it"
    assert (first, again) == (0, 0), "there is no more, for anybody"
    assert all(greedy == 0 and late > 0 for greedy, late in both), "what gets free is for others"


def test_many_clients_may_write_large_values_while_there_is_room() -> None:
    meter = ByteMeter()
    meter.most_bytes = 10_000.0

    for number in range(50):
        meter.passes(1, 60.0, 0.0, f"c{number}")

    assert meter.passes(2000, 60.0, 0.0, "c7")
    assert meter.passes(2000, 60.0, 0.0, "c8"), "whoever has little may write more than its part"
    assert not meter.passes(10, 60.0, 0.0, "c7")
    assert meter.passes(10, 60.0, 0.0, "c9")
