from collections.abc import Iterator

import pytest

from cluster_gw.background.schema_watch import AGAIN_AFTER, SchemaWatch
from cluster_gw.errors import StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.meta import open_schema
from cluster_gw.store.scripts import load_scripts
from tests.fakes.redis_server import RedisServer, needed_redis


@pytest.fixture
def server() -> Iterator[RedisServer]:
    binary = needed_redis()
    server = RedisServer(binary)  # not started yet
    yield server
    server.kill()


@pytest.mark.parametrize(("stored", "refusals"), [(1, 0), (99, 1)])
async def test_server_that_comes_after_the_start_is_asked_and_its_refusal_told_once(
    server: RedisServer, stored: int, refusals: int
) -> None:
    client, scripts, keys = RedisClient(server.url, prefix="gw1"), load_scripts(), Keys("gw1")
    told: list[str] = []
    watch = SchemaWatch(lambda: open_schema(client, scripts, keys), told.append)
    client.on_change(lambda is_up: watch.note_connection(is_up=is_up))
    with pytest.raises(StoreLostError):
        await client.start(0.01)
    await watch.look()
    assert client.calls == 0

    server.start()
    server.command("HSET", keys.meta(), "schema", str(stored), "min_reader", str(stored))
    await client.start(5.0)
    await watch.look()
    calls = client.calls
    await watch.look()

    assert client.calls == calls
    assert len(told) == refusals
    assert all("redis holds schema 99" in reason for reason in told)
    await client.close()


async def test_question_without_an_answer_is_asked_again() -> None:
    asked: list[None] = []

    async def lose_once() -> None:
        asked.append(None)
        if len(asked) == 1:
            raise StoreLostError("no reply in time")

    watch = SchemaWatch(lose_once, lambda _: None)
    watch.note_connection(is_up=True)

    for _ in range(3):
        await watch.look()

    assert len(asked) == 2


async def test_nothing_is_asked_of_a_server_that_is_gone() -> None:
    asked: list[None] = []

    async def ask() -> None:
        asked.append(None)

    watch = SchemaWatch(ask, lambda _: None)
    watch.note_connection(is_up=True)
    watch.note_connection(is_up=False)

    await watch.look()

    assert asked == []


async def test_server_that_was_emptied_is_told_again_who_writes_there(server: RedisServer) -> None:
    server.start()
    client, scripts, keys = RedisClient(server.url, prefix="gw1"), load_scripts(), Keys("gw1")
    watch = SchemaWatch(lambda: open_schema(client, scripts, keys), lambda _: None)
    client.on_change(lambda is_up: watch.note_connection(is_up=is_up))
    await client.start(5.0)
    await watch.look()
    server.command("FLUSHALL")

    for _ in range(AGAIN_AFTER):
        await watch.look()

    assert await client.call("EXISTS", keys.meta()) == 1
    await client.close()
