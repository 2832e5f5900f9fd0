"""A link follows its source: to another server, and not to one that cannot be used."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from redis.asyncio.connection import AbstractConnection

from cluster_gw.store.absence import BLIP_S, GRACE_S, PROBE_S
from cluster_gw.store.address import Login, Server
from cluster_gw.store.lane import disconnect, pack
from cluster_gw.store.link import (
    BACKOFF_MAX_S,
    BACKOFF_MIN_S,
    NO_MASTER,
    NOBODY_KNOWS,
    Link,
    _end,
    longer_backoff_s,
)
from cluster_gw.store.topology import Dialer, FixedServer
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.store.conftest import LeftOpen


class Pointer:
    """A source that names whatever the test says."""

    connect_s = 0.25
    watch_s = 0.1

    def __init__(self) -> None:
        self.server: Server | None = None
        self._dialer = Dialer(login=Login(), tls=None)

    async def find(self) -> Server | None:
        return self.server

    def dial(self, server: Server) -> AbstractConnection:
        return self._dialer.to(server)


@pytest.fixture
def other_server() -> Iterator[RedisServer]:
    with RedisServer(needed_redis()) as server:
        yield server


@pytest.fixture
async def pointer() -> Pointer:
    return Pointer()


@pytest.fixture
async def link(pointer: Pointer) -> AsyncIterator[Link]:
    link = Link(pointer, deadline_s=0.3, max_pending=100, on_change=lambda: None)
    link.start()
    yield link
    await link.close()


def at(server: RedisServer) -> Server:
    return Server(str(server.path), 0)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5.0):
        while not holds():  # noqa: ASYNC110 - whatever a server does
            await asyncio.sleep(0.005)


async def answer(link: Link) -> bytes | None:
    assert link.lane is not None
    value: bytes | None = await link.lane.submit(pack(("GET", "name")))
    return value


async def test_another_master_is_followed_though_the_old_one_still_answers(
    pointer: Pointer, link: Link, own_server: RedisServer, other_server: RedisServer
) -> None:
    own_server.command("SET", "name", "old")
    other_server.command("SET", "name", "new")
    pointer.server = at(own_server)
    await until(lambda: link.is_up)
    assert await answer(link) == b"old"

    pointer.server = at(other_server)

    await until(lambda: link.reconnects == 1 and link.is_up)
    assert await answer(link) == b"new"


async def test_nobody_who_knows_the_master_changes_nothing(
    pointer: Pointer, link: Link, own_server: RedisServer
) -> None:
    pointer.server = at(own_server)
    await until(lambda: link.is_up)

    pointer.server = None
    await asyncio.sleep(0.5)  # looked at twice meanwhile

    assert link.is_up
    assert link.reconnects == 0


async def test_link_says_why_it_is_down(
    pointer: Pointer, link: Link, own_server: RedisServer
) -> None:
    await until(lambda: link.fault == NOBODY_KNOWS)

    own_server.command("REPLICAOF", "127.0.0.1", "1")
    pointer.server = at(own_server)
    await until(lambda: link.fault == NO_MASTER)

    own_server.command("CONFIG", "SET", "requirepass", "x")
    await until(lambda: "AuthenticationError" in link.fault)
    assert not link.is_up


def test_server_is_given_up_wholly_though_the_link_is_closed_meanwhile(
    silent_port: int, left_open: LeftOpen
) -> None:
    async def close_after(turns: int) -> None:
        server = Server("127.0.0.1", silent_port)
        source = FixedServer(Dialer(login=Login(), tls=None), server)
        link = Link(source, deadline_s=0.3, max_pending=100, on_change=lambda: None)
        connection = source.dial(server)
        await connection.connect()  # type: ignore[no-untyped-call]

        async def give_up() -> None:
            await _end(link._lane_on(connection), connection)

        giving_up = asyncio.ensure_future(give_up())
        for _ in range(turns):
            await asyncio.sleep(0)
        giving_up.cancel()
        await asyncio.gather(giving_up, return_exceptions=True)
        assert turns == 0 or not connection.is_connected
        await disconnect(connection)

    assert left_open(close_after(turns) for turns in range(6)) == []


def test_server_that_is_back_after_a_blip_is_found_within_the_grace_by_everybody() -> None:
    at_s = pause_s = BACKOFF_MIN_S  # each pause as long as it may be
    while at_s < BLIP_S:
        pause_s = longer_backoff_s(pause_s, at_s)
        at_s += pause_s

    assert at_s + PROBE_S < GRACE_S
    for _ in range(10):
        pause_s = longer_backoff_s(pause_s, GRACE_S)
    assert pause_s == BACKOFF_MAX_S
