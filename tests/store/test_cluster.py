"""Redirections, lost nodes and loaded scripts of a cluster; failovers are in tests/cluster."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from cluster_gw.errors import ConfigInvalidError, StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.lane import NotSentError
from cluster_gw.store.scripts import Scripts
from tests.fakes.listening import CHANNEL, Heard, listening
from tests.fakes.redis_masters import TwoMasters
from tests.fakes.redis_nodes import RedisNode
from tests.fakes.redis_server import needed_redis
from tests.fakes.waiting import until_soon

LOW, HIGH = "{b}", "{a}"
DEADLINE_S = 0.3


@pytest.fixture(scope="module")
def running() -> Iterator[TwoMasters]:
    with TwoMasters(needed_redis()) as masters:
        yield masters


@pytest.fixture
def masters(running: TwoMasters) -> TwoMasters:
    running.reset()
    return running


@pytest.fixture
async def client(masters: TwoMasters) -> AsyncIterator[RedisClient]:
    client = RedisClient(masters.url, prefix="gw1", deadline_s=DEADLINE_S)
    await client.start(5.0)
    yield client
    masters.low.thaw()
    masters.high.thaw()
    await client.close()


async def until_up(client: RedisClient, *, is_up: bool, within_s: float = 5.0) -> None:
    async with asyncio.timeout(within_s):
        while client.is_up is not is_up:  # noqa: ASYNC110 - the state of a process elsewhere
            await asyncio.sleep(0.005)


async def test_every_call_goes_to_the_master_of_its_slot(
    client: RedisClient, masters: TwoMasters
) -> None:
    names = [f"{{{n}}}" for n in range(200)]
    before = client.flushes

    await asyncio.gather(*(client.call("SET", name, n) for n, name in enumerate(names)))

    assert client.flushes < before + 10  # one write to each, and perhaps the table was read
    replies = await asyncio.gather(*(client.call("GET", name) for name in names))
    assert replies == [str(n).encode() for n in range(200)]
    assert 0 < masters.low.call("DBSIZE") < 200
    assert client.lost == 0


async def test_moved_slot_is_followed_and_remembered(
    client: RedisClient, masters: TwoMasters
) -> None:
    await client.call("SET", HIGH, "x")
    source, target = masters.begin_move(HIGH)
    source.call("MIGRATE", "127.0.0.1", str(target.port), HIGH, "0", "1000")
    slot = source.call("CLUSTER", "KEYSLOT", HIGH)
    masters.give(slot, target)

    assert await client.call("GET", HIGH) == b"x"
    before = source.info("errorstats")["errorstat_MOVED"]
    assert await client.call("GET", HIGH) == b"x"
    assert source.info("errorstats")["errorstat_MOVED"] == before


async def test_cancelled_call_may_be_redirected_and_hurts_nobody(
    client: RedisClient, masters: TwoMasters
) -> None:
    source, target = masters.begin_move(HIGH)
    masters.give(source.call("CLUSTER", "KEYSLOT", HIGH), target)
    target.freeze()
    calls = [asyncio.create_task(client.call("GET", HIGH)) for _ in range(4)]
    await asyncio.sleep(0.01)
    for call in calls[::2]:
        call.cancel()
    target.thaw()

    replies = await asyncio.gather(*calls, return_exceptions=True)

    assert [reply for reply in replies if not isinstance(reply, asyncio.CancelledError)] == [
        None,
        None,
    ]
    assert client.reconnects == 0


async def test_call_that_left_before_it_was_redirected_is_dropped(
    client: RedisClient, masters: TwoMasters
) -> None:
    source, target = masters.begin_move(HIGH)
    masters.give(source.call("CLUSTER", "KEYSLOT", HIGH), target)
    call = asyncio.create_task(client.call("INCR", HIGH))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.sleep(0.05)

    assert target.call("EXISTS", HIGH) == 0
    assert client.reconnects == 0


async def test_redirected_call_ends_though_the_node_that_keeps_its_deadline_is_lost(
    client: RedisClient, masters: TwoMasters
) -> None:
    source, target = masters.begin_move(HIGH)
    masters.give(source.call("CLUSTER", "KEYSLOT", HIGH), target)
    target.freeze()
    call = asyncio.create_task(client.call("GET", HIGH))
    await asyncio.sleep(0.05)

    source.call("CLIENT", "KILL", "TYPE", "normal")

    with pytest.raises(StoreLostError):
        await asyncio.wait_for(call, DEADLINE_S)
    target.thaw()


async def test_two_nodes_that_point_at_each_other_end_in_a_lost_call(
    client: RedisClient, masters: TwoMasters
) -> None:
    slot = str(masters.low.call("CLUSTER", "KEYSLOT", HIGH))
    names = {node: node.call("CLUSTER", "MYID") for node in (masters.low, masters.high)}
    masters.begin_move(HIGH)
    masters.low.call("CLUSTER", "SETSLOT", slot, "NODE", names[masters.high])
    masters.high.call("CLUSTER", "SETSLOT", slot, "NODE", names[masters.low])

    started_s = time.monotonic()
    with pytest.raises(StoreLostError):
        await client.call("GET", HIGH)

    assert time.monotonic() - started_s < DEADLINE_S


async def test_a_slot_on_its_way_is_asked_for_where_its_keys_are(
    client: RedisClient, masters: TwoMasters
) -> None:
    names = [f"{HIGH}{n}" for n in range(4)]
    for name in names:
        await client.call("SET", name, name)
    source, target = masters.begin_move(HIGH)
    for name in names[:2]:
        source.call("MIGRATE", "127.0.0.1", str(target.port), name, "0", "1000")

    calls = [client.call("GET", name) for _ in range(20) for name in names]
    replies = await asyncio.gather(*calls)

    assert replies == [name.encode() for _ in range(20) for name in names]


async def test_keys_on_both_sides_of_a_move_make_a_lost_call(
    client: RedisClient, masters: TwoMasters
) -> None:
    names = [f"{HIGH}{n}" for n in range(2)]
    for name in names:
        await client.call("SET", name, name)
    source, target = masters.begin_move(HIGH)
    source.call("MIGRATE", "127.0.0.1", str(target.port), names[0], "0", "1000")

    with pytest.raises(StoreLostError, match="TRYAGAIN"):
        await client.call("EVAL", "return redis.call('GET', KEYS[1])", 2, *names)


async def test_a_script_that_no_node_knows_runs_on_each_and_on_the_way(
    client: RedisClient, masters: TwoMasters, scripts: Scripts
) -> None:
    script = scripts["session/advance_cursor"]

    async def advance(key: str) -> int:
        return int((await client.run(script, [key], [60_000]))[2])

    assert [await advance(LOW), await advance(HIGH)] == [1, 1]
    source, target = masters.begin_move(HIGH)
    source.call("MIGRATE", "127.0.0.1", str(target.port), HIGH, "0", "1000")
    target.call("SCRIPT", "FLUSH")

    assert await advance(HIGH) == 2
    assert await advance(LOW) == 2


async def test_lost_node_fails_its_own_slots_at_once_and_the_others_go_on(
    client: RedisClient, masters: TwoMasters
) -> None:
    await client.call("SET", LOW, "x")
    masters.high.freeze()

    started_s = time.monotonic()
    outcomes = await asyncio.gather(
        *(client.call("GET", HIGH) for _ in range(3)), return_exceptions=True
    )
    assert all(isinstance(outcome, StoreLostError) for outcome in outcomes)
    assert time.monotonic() - started_s < DEADLINE_S + 0.2
    while client.is_up:
        with pytest.raises(StoreLostError):
            await client.call("GET", HIGH)

    with pytest.raises(NotSentError):
        await client.call("GET", HIGH)
    assert await client.call("GET", LOW) == b"x"
    assert not client.is_cut_off

    masters.high.thaw()
    await until_up(client, is_up=True)
    assert await client.call("GET", HIGH) is None


async def test_change_is_told_once_for_the_whole_cluster(
    client: RedisClient, masters: TwoMasters
) -> None:
    changes: list[bool] = []
    client.on_change(changes.append)
    masters.high.call("CLIENT", "KILL", "TYPE", "normal")

    async with asyncio.timeout(5.0):
        while client.reconnects == 0:  # noqa: ASYNC110 - it may be up again before we look
            await asyncio.sleep(0.005)
    assert client.is_up
    assert changes == [False, True]


async def test_client_without_any_node_fails_to_start_and_finds_them_later(
    masters: TwoMasters,
) -> None:
    port = masters.low.port
    client = RedisClient(f"redis+cluster://127.0.0.1:1,127.0.0.1:{port}", prefix="gw1")
    masters.low.freeze()

    with pytest.raises(StoreLostError):
        await client.start(0.2)
    assert client.is_cut_off
    masters.low.thaw()

    await until_up(client, is_up=True)
    assert await client.call("SET", HIGH, "x") == b"OK"
    await client.close()
    with pytest.raises(StoreLostError):
        await client.call("GET", HIGH)


async def test_events_of_every_master_are_heard_from_any_and_a_lost_one_is_left(
    masters: TwoMasters,
) -> None:
    ports = (masters.low.port, masters.high.port)
    url = f"redis+cluster://{','.join(f'127.0.0.1:{port}' for port in ports)}"
    async with listening(url, deadline_s=DEADLINE_S) as (bus, heard):
        await until_soon(lambda: bus.is_up)
        for node in (masters.low, masters.high):
            await asyncio.to_thread(node.call, "PUBLISH", CHANNEL, "told")
        await until_soon(lambda: heard.texts == [b"told"] * 2)

        # Whichever of them it listens to, it finds the other one.
        for frozen, other in ((masters.low, masters.high), (masters.high, masters.low)):
            frozen.freeze()
            await until_soon(lambda node=other: _hears(node, heard))  # type: ignore[misc]
            frozen.thaw()
    assert bus.reconnects >= 1


def _hears(node: RedisNode, heard: Heard) -> bool:
    """Whether what this node is told now reaches the listener."""
    text = f"by {node.port}"
    node.call("PUBLISH", CHANNEL, text)
    return text.encode() in heard.texts


def test_a_numbered_database_of_a_cluster_is_refused() -> None:
    with pytest.raises(ConfigInvalidError, match=r"redis\.url: a cluster has no"):
        RedisClient("redis+cluster://h/3", prefix="gw1")
