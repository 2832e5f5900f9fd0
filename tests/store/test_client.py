import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from cluster_gw.errors import ConfigInvalidError, ScriptContractError, StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.lane import NotSentError
from cluster_gw.store.scripts import Scripts
from tests.fakes.redis_server import RedisServer

DEADLINE_S = 0.2


@pytest.fixture
async def impatient(own_server: RedisServer) -> AsyncIterator[RedisClient]:
    client = RedisClient(own_server.url, prefix="gw1", deadline_s=DEADLINE_S)
    await client.start(5.0)
    yield client
    own_server.thaw()
    await client.close()


async def until_up(client: RedisClient, is_up: bool, within_s: float = 5.0) -> None:
    changed = asyncio.Event()
    client.on_change(lambda _: changed.set())
    async with asyncio.timeout(within_s):
        while client.is_up is not is_up:
            changed.clear()
            await changed.wait()


async def test_each_call_gets_its_own_reply(client: RedisClient) -> None:
    replies = await asyncio.gather(*(client.call("ECHO", str(n)) for n in range(500)))

    assert replies == [str(n).encode() for n in range(500)]


async def test_replies_keep_their_types(client: RedisClient) -> None:
    await client.call("SET", "text", "x")
    await client.call("RPUSH", "list", b"\x00\xff", 2, 1.5)

    assert await client.call("GET", "text") == b"x"
    assert await client.call("GET", "nothing") is None
    assert await client.call("LRANGE", "list", 0, -1) == [b"\x00\xff", b"2", b"1.5"]
    assert await client.call("LLEN", "list") == 3


async def test_calls_of_one_turn_leave_in_one_write(client: RedisClient) -> None:
    before = client.flushes

    await asyncio.gather(*(client.call("PING") for _ in range(200)))

    assert client.flushes == before + 1


async def test_calls_one_after_another_leave_at_once(client: RedisClient) -> None:
    before = client.flushes
    for _ in range(5):
        await client.call("PING")

    assert client.flushes == before + 5


async def test_lazy_call_waits_for_company_and_rides_along(client: RedisClient) -> None:
    before = client.flushes

    lazy = client.submit("ECHO", "lazy", lazy=True)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert client.flushes == before
    assert await client.call("ECHO", "now") == b"now"

    assert await lazy == b"lazy"
    assert client.flushes == before + 1


async def test_lonely_lazy_call_leaves_by_itself(client: RedisClient) -> None:
    lazy = [client.call("ECHO", str(n), lazy=True) for n in range(3)]

    before = client.flushes
    assert await asyncio.gather(*lazy) == [b"0", b"1", b"2"]
    assert client.flushes == before + 1


async def test_lazy_call_after_a_flush_of_the_same_turn_writes_nothing_empty(
    client: RedisClient,
) -> None:
    before = client.flushes
    first = client.submit("ECHO", "a")
    second = client.submit("ECHO", "b", lazy=True)
    await asyncio.gather(first, second)

    await asyncio.sleep(0.01)

    assert client.flushes == before + 1


async def test_cancelled_callers_do_not_shift_replies(client: RedisClient) -> None:
    tasks = [asyncio.create_task(client.call("ECHO", str(n))) for n in range(60)]
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()

    replies = await asyncio.gather(*tasks, return_exceptions=True)

    kept = [(n, reply) for n, reply in enumerate(replies) if n % 3]
    assert all(isinstance(reply, asyncio.CancelledError) for reply in replies[::3])
    assert [reply for _, reply in kept] == [str(n).encode() for n, _ in kept]
    assert await client.call("ECHO", "after") == b"after"


async def test_error_reply_is_a_contract_error_and_the_next_call_works(client: RedisClient) -> None:
    await client.call("SET", "text", "x")

    with pytest.raises(ScriptContractError, match="redis answered ERR"):
        await client.call("SETRANGE", "text", -1, "x")
    assert await client.call("GET", "text") == b"x"


async def test_error_text_repeats_no_argument(client: RedisClient) -> None:
    with pytest.raises(ScriptContractError) as caught:
        await client.call("NOSUCHCOMMAND", "top-secret")

    assert "top-secret" not in str(caught.value)


async def test_script_is_loaded_when_the_server_forgot_it(
    client: RedisClient, scripts: Scripts
) -> None:
    script = scripts["session/advance_cursor"]

    async def advance() -> int:
        reply = await client.run(script, ["gw1:rr:{c}"], [60_000])
        return int(reply[2])

    assert await advance() == 1
    await client.call("SCRIPT", "FLUSH")
    assert sorted(await asyncio.gather(*(advance() for _ in range(10)))) == list(range(2, 12))


async def test_wrong_script_argument_is_a_contract_error(
    client: RedisClient, scripts: Scripts
) -> None:
    with pytest.raises(ScriptContractError, match=r"GW_BADARG ARGV\[1\]"):
        await client.run(scripts["session/advance_cursor"], ["c"], [0])


@pytest.mark.parametrize("reply", ["OOM no", "NOREPLICAS no", "MISCONF no", "TRYAGAIN no"])
async def test_refusal_to_work_is_a_lost_store(client: RedisClient, reply: str) -> None:
    with pytest.raises(StoreLostError, match=reply.removesuffix(" no")):
        await client.call("EVAL", f"return redis.error_reply('{reply}')", 0)

    assert await client.call("PING") == b"PONG"
    assert client.lost == 1


async def test_readonly_replica_is_a_lost_store(
    own_server: RedisServer, impatient: RedisClient
) -> None:
    await impatient.call("REPLICAOF", "127.0.0.1", "1")

    with pytest.raises(StoreLostError, match="READONLY"):
        await impatient.call("SET", "a", "b")
    assert not impatient.is_up  # and it stays so until the server is a master

    await asyncio.sleep(0.1)
    assert not impatient.is_up
    own_server.command("REPLICAOF", "NO", "ONE")
    await until_up(impatient, is_up=True)
    assert await impatient.call("SET", "a", "b") == b"OK"


async def test_killed_server_fails_pending_calls_and_is_found_again(
    own_server: RedisServer, impatient: RedisClient
) -> None:
    changes: list[bool] = []
    impatient.on_change(changes.append)
    own_server.freeze()
    pending = [asyncio.ensure_future(impatient.call("INCR", "n")) for _ in range(20)]
    await asyncio.sleep(0.01)

    own_server.kill()
    outcomes = await asyncio.gather(*pending, return_exceptions=True)
    assert all(isinstance(outcome, StoreLostError) for outcome in outcomes)
    await until_up(impatient, is_up=False)
    with pytest.raises(NotSentError):
        await impatient.call("PING")

    own_server.start()
    await until_up(impatient, is_up=True)
    assert await impatient.call("PING") == b"PONG"
    assert changes == [False, True]
    assert impatient.reconnects == 1


async def test_every_call_to_a_frozen_server_ends_within_its_deadline(
    own_server: RedisServer, impatient: RedisClient
) -> None:
    own_server.freeze()
    longest_s = 0.0

    async def call() -> None:
        nonlocal longest_s
        started_s = time.monotonic()
        with pytest.raises(StoreLostError):
            await impatient.call("INCR", "n")
        longest_s = max(longest_s, time.monotonic() - started_s)

    async with asyncio.TaskGroup() as group:
        for _ in range(100):
            group.create_task(call())
            await asyncio.sleep(0.01)

    assert longest_s < DEADLINE_S + 0.2
    assert not impatient.is_up  # deadlines missed in a row: the connection was given up

    own_server.thaw()
    await until_up(impatient, is_up=True)
    assert await impatient.call("PING") == b"PONG"


async def test_server_frozen_for_less_than_the_deadline_loses_nothing(
    own_server: RedisServer, impatient: RedisClient
) -> None:
    own_server.freeze()
    pending = asyncio.gather(*(impatient.call("INCR", "n") for _ in range(50)))
    await asyncio.sleep(DEADLINE_S / 4)

    own_server.thaw()

    assert await pending == list(range(1, 51))
    assert impatient.reconnects == 0


async def test_replies_that_come_after_their_deadline_reach_nobody_else(
    own_server: RedisServer, impatient: RedisClient
) -> None:
    own_server.freeze()
    with pytest.raises(StoreLostError):
        await impatient.call("ECHO", "old")

    own_server.thaw()

    assert await impatient.call("ECHO", "new") == b"new"
    assert impatient.reconnects == 0  # one miss is not three in a row


async def test_blocked_loop_is_not_mistaken_for_a_lost_store(impatient: RedisClient) -> None:
    pending = asyncio.ensure_future(impatient.call("PING"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    busy_until_s = time.monotonic() + DEADLINE_S * 2
    while time.monotonic() < busy_until_s:
        pass

    assert await pending == b"PONG"


async def test_closed_connection_is_never_reopened_under_waiting_calls(
    client: RedisClient,
) -> None:
    lane = client._route.lane_for(("ECHO",))
    assert lane is not None
    closing = asyncio.ensure_future(lane._connection.disconnect(nowait=True))
    pending = [asyncio.ensure_future(client.call("ECHO", str(n))) for n in range(5)]

    outcomes = await asyncio.gather(*pending, return_exceptions=True)

    assert all(isinstance(outcome, StoreLostError) for outcome in outcomes)
    await closing
    await until_up(client, is_up=True)
    assert await client.call("ECHO", "x") == b"x"


async def test_full_queue_refuses_at_once(own_server: RedisServer) -> None:
    client = RedisClient(own_server.url, prefix="gw1", deadline_s=DEADLINE_S, max_pending=5)
    await client.start(5.0)
    own_server.freeze()
    pending = [asyncio.ensure_future(client.call("PING")) for _ in range(6)]
    done, _ = await asyncio.wait(pending, timeout=DEADLINE_S / 4)

    assert len(done) == 1
    assert isinstance(done.pop().exception(), NotSentError)

    own_server.thaw()
    await asyncio.gather(*pending, return_exceptions=True)
    await client.close()


async def test_start_without_a_server_fails_in_time_and_finds_it_later(
    own_server: RedisServer,
) -> None:
    own_server.kill()
    client = RedisClient(own_server.url, prefix="gw1")

    with pytest.raises(StoreLostError):
        await client.start(0.1)
    own_server.start()

    await until_up(client, is_up=True)
    assert await client.call("PING") == b"PONG"
    await client.close()


async def test_start_at_a_frozen_server_fails_though_it_accepts_connections(
    own_server: RedisServer,
) -> None:
    own_server.freeze()
    client = RedisClient(own_server.url, prefix="gw1", deadline_s=DEADLINE_S)

    with pytest.raises(StoreLostError):
        await client.start(0.3)

    own_server.thaw()
    await client.close()


async def test_closed_client_fails_calls_and_stays_closed(redis_server: RedisServer) -> None:
    client = RedisClient(redis_server.url, prefix="gw1")
    await client.start(5.0)

    await client.close()

    assert not client.is_up
    with pytest.raises(StoreLostError):
        await client.call("PING")
    await client.close()


async def test_client_is_named_in_the_servers_list(client: RedisClient) -> None:
    assert b"name=gw1 " in await client.call("CLIENT", "LIST")


@pytest.mark.parametrize(
    "url", ["http://h", "redis+sentinel://h", "embedded:", "redis://u:pw@h:port"]
)
def test_unusable_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigInvalidError, match=r"redis\.url") as caught:
        RedisClient(url, prefix="gw1")

    assert url not in str(caught.value)


async def test_known_scripts_are_there_before_the_first_call_and_after_a_restart(
    own_server: RedisServer, scripts: Scripts
) -> None:
    client = RedisClient(own_server.url, prefix="gw1")
    script = scripts["session/advance_cursor"]
    client.know(script)
    await client.start(5.0)
    assert await client.call("SCRIPT", "EXISTS", script.sha) == [1]

    own_server.kill()
    own_server.start()
    await until_up(client, is_up=False)
    await until_up(client, is_up=True)

    assert await client.call("SCRIPT", "EXISTS", script.sha) == [1]
    await client.close()


async def test_script_that_is_known_late_is_loaded_at_once(
    client: RedisClient, scripts: Scripts
) -> None:
    script = scripts["session/advance_cursor"]
    await client.call("SCRIPT", "FLUSH")

    client.know(script)

    assert await client.call("SCRIPT", "EXISTS", script.sha) == [1]
    assert client.lost == 0


async def test_reply_that_ends_a_connection_ends_it_also_when_it_came_with_others(
    client: RedisClient,
) -> None:
    loading = "return redis.error_reply('LOADING not yet')"
    calls = [client.call("ECHO", "a"), client.call("EVAL", loading, 0), client.call("ECHO", "b")]

    first, *others = await asyncio.gather(*calls, return_exceptions=True)

    assert first == b"a"
    assert [type(fault) for fault in others] == [StoreLostError, StoreLostError]
    await until_up(client, is_up=True)
    assert await client.call("ECHO", "c") == b"c"
