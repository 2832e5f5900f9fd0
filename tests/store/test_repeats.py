"""What workers ask and tell each other about idempotency keys, through a real server."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from cluster_gw.errors import StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.repeats import (
    Answered,
    Conflict,
    Heard,
    Held,
    Kept,
    Nobody,
    Repeats,
    Taken,
    Ticket,
    Unavailable,
)
from cluster_gw.store.scripts import load_scripts
from cluster_gw.store.sealing import AesSeal, Seal, Unsealed
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon

KEYS = Keys("gw1")
TICKET = Ticket(client="app", key="ab12", body="body")
OTHER = Ticket(client="app", key="ab12", body="another")
ANSWER = Kept(headers=((b"content-type", b"text/plain"),), body=b"said \xff", is_stream=False)
DAY_MS = 86_400_000
LONGEST_S = 0.5


def repeats_of(client: RedisClient, seal: Seal | None = None, worker: str = "w1") -> Repeats:
    return Repeats(client, load_scripts(), KEYS, seal or Unsealed(), worker_id=worker)


async def taken(repeats: Repeats, ticket: Ticket = TICKET) -> int:
    told = await repeats.ask(ticket)
    assert isinstance(told, Taken)
    return told.token


async def keep(repeats: Repeats, token: int, answer: Kept = ANSWER) -> bool:
    sealed = await repeats.sealed(TICKET, answer)
    return await repeats.keep(TICKET, token, sealed, ttl_ms=DAY_MS)


@pytest.mark.parametrize("seal", [Unsealed(), AesSeal(b"k" * 32)])
async def test_a_large_answer_is_kept_whole_and_small(
    seal: Seal, client: RedisClient, redis_server: RedisServer
) -> None:
    large = Kept(headers=(), body=b"the same words " * 100_000, is_stream=True)
    repeats = repeats_of(client, seal)

    token = await taken(repeats)
    assert await keep(repeats, token, large)

    assert await repeats.ask(TICKET) == Answered(token=token, answer=large)
    record = KEYS.repeats("app", "ab12")[0]
    assert int(redis_server.command("HSTRLEN", record, "answer").strip(b":\r\n")) < 10_000


@pytest.mark.parametrize("forged", [b"(\xb5/\xfd nonsense", b"", b"\x01" * 40])
async def test_what_nobody_has_written_is_unreadable(forged: bytes, client: RedisClient) -> None:
    repeats = repeats_of(client)
    await repeats.keep(TICKET, await taken(repeats), forged or b"x", ttl_ms=DAY_MS)

    assert await repeats.ask(TICKET) == Unavailable("unreadable")


async def test_one_call_has_a_key_and_its_answer_is_told_to_all(client: RedisClient) -> None:
    one, other = repeats_of(client), repeats_of(client, worker="w2")
    token = await taken(one)

    assert await other.ask(TICKET) == Held(token=token)
    assert await other.ask(OTHER) == Conflict()
    assert await keep(one, token)
    assert await other.ask(TICKET) == Answered(token=token, answer=ANSWER)


@pytest.mark.parametrize("seal", [Unsealed(), AesSeal(b"k" * 32)])
async def test_pieces_arrive_in_order_and_sealed(
    seal: Seal, client: RedisClient, redis_server: RedisServer
) -> None:
    one, other = repeats_of(client, seal), repeats_of(client, seal, "w2")
    token = await taken(one)
    assert await other.ask(TICKET, known=0) == Held(token=token)
    assert await one.go_on(TICKET, token) == Heard(is_followed=True)

    await one.go_on(TICKET, token, 0, [b"head", b"one"])
    await one.go_on(TICKET, token, 2, [b"two"])
    first = await other.ask(TICKET, token=token, known=0)
    then = await other.ask(TICKET, token=token, known=2)

    assert first == Held(token=token, pieces=(b"head", b"one", b"two"))
    assert then == Held(token=token, pieces=(b"two",))
    raw = redis_server.command("LRANGE", KEYS.repeats("app", "ab12")[1], "0", "-1")
    assert (b"head" in raw) is isinstance(seal, Unsealed)


async def test_a_key_is_free_when_its_call_gives_it_back(client: RedisClient) -> None:
    repeats = repeats_of(client)
    token = await taken(repeats)

    repeats.free(TICKET, token, "failed")

    assert await repeats.ask(TICKET, may_take=False) == Nobody()
    assert await taken(repeats, OTHER) > token
    assert await repeats.go_on(TICKET, token) is None


async def test_pieces_that_were_evicted_end_the_feed_and_not_the_call(
    client: RedisClient, redis_server: RedisServer
) -> None:
    repeats = repeats_of(client)
    token = await taken(repeats)
    await repeats.ask(TICKET, known=0)
    await repeats.go_on(TICKET, token, 0, [b"head"])
    redis_server.command("DEL", KEYS.repeats("app", "ab12")[1])

    assert await repeats.go_on(TICKET, token, 1, [b"x"]) == Heard(is_followed=True, is_fed=False)
    assert await keep(repeats, token)


async def test_what_was_sealed_by_another_key_is_unreadable(client: RedisClient) -> None:
    sealed = repeats_of(client, AesSeal(b"k" * 32))
    await keep(sealed, await taken(sealed))

    told = [await repeats_of(client, seal).ask(TICKET) for seal in (AesSeal(b"o" * 32), None)]

    assert told == [Unavailable("unreadable"), Unavailable("unreadable")]


@pytest.fixture
async def own_client(own_server: RedisServer) -> AsyncIterator[RedisClient]:
    """A client of a server that may be frozen."""
    client = RedisClient(own_server.url, prefix="gw1")
    await client.start(5.0)
    yield client
    await client.close()


async def test_a_frozen_server_holds_nobody_up_and_a_key_taken_late_is_given_back(
    own_client: RedisClient, own_server: RedisServer
) -> None:
    repeats = repeats_of(own_client)
    await own_client.call("PING")
    own_server.freeze()
    before_s = time.monotonic()
    told = await repeats.ask_within(TICKET, 0.05)
    took_s = time.monotonic() - before_s
    own_server.thaw()

    assert isinstance(told, Unavailable)
    assert took_s < LONGEST_S
    record = KEYS.repeats("app", "ab12")[0]
    await until_soon(lambda: b"late" in own_server.command("HGETALL", record))
    assert isinstance(await repeats.ask(TICKET), Taken)


async def test_who_is_cancelled_while_asking_keeps_no_key(
    client: RedisClient, redis_server: RedisServer
) -> None:
    repeats = repeats_of(client)
    asking = asyncio.create_task(repeats.ask_within(TICKET, 5.0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    asking.cancel()

    record = KEYS.repeats("app", "ab12")[0]
    await until_soon(lambda: b"late" in redis_server.command("HGETALL", record))
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_what_cannot_be_told_to_redis_is_raised(
    own_client: RedisClient, own_server: RedisServer
) -> None:
    repeats = repeats_of(own_client)
    token = await taken(repeats)
    own_server.stop()

    with pytest.raises(StoreLostError):
        await keep(repeats, token)
    assert isinstance(await repeats.ask(TICKET), Unavailable)
    repeats.free(TICKET, token, "failed")
