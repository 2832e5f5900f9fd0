"""Which connection is used next, and how long one waits; the clock is the test's."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from cluster_gw.upstream.connection import Connection
from cluster_gw.upstream.origin import Place
from cluster_gw.upstream.pool import Pool, Reuse
from tests.upstream.tape import PLACE, Tape

ELSEWHERE = Place("127.0.0.1", 80, is_tls=True)
KEEPALIVE_S = 30.0
REUSE = Reuse(keepalive_s=KEEPALIVE_S, max_requests=3, max_age_s=100.0)


class ManualLoop:
    """A clock and its timers."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, call: Callable[[], None]) -> "ManualLoop":
        assert delay_s > 0
        self.timers.append((self.now_s + delay_s, call))
        return self

    def cancel(self) -> None:
        self.timers.clear()

    def advance(self, to_s: float) -> None:
        while due := [timer for timer in self.timers if timer[0] <= to_s]:
            self.timers.remove(due[0])
            self.now_s = max(self.now_s, due[0][0])
            due[0][1]()
        self.now_s = to_s


@pytest.fixture
def loop() -> ManualLoop:
    return ManualLoop()


@pytest.fixture
def pool(loop: ManualLoop) -> Pool:
    return Pool(cast("asyncio.AbstractEventLoop", loop), REUSE)


def connected(pool: Pool, loop: ManualLoop, place: Place = PLACE) -> tuple[Connection, Tape]:
    connection = Connection(place, cast("asyncio.AbstractEventLoop", loop), pool.give)
    tape = Tape()
    connection.connection_made(tape)
    return connection, tape


def test_newest_connection_is_taken_first(pool: Pool, loop: ManualLoop) -> None:
    old, new = connected(pool, loop)[0], connected(pool, loop)[0]
    pool.give(old)
    pool.give(new)

    assert [pool.take(PLACE), pool.take(PLACE), pool.take(PLACE)] == [new, old, None]


def test_connection_is_taken_only_for_its_place(pool: Pool, loop: ManualLoop) -> None:
    pool.give(connected(pool, loop)[0])

    assert pool.take(ELSEWHERE) is None


@pytest.mark.parametrize("spoil", ["abort", "bytes", "end", "lost"])
def test_connection_that_ended_while_idle_is_not_taken(
    spoil: str, pool: Pool, loop: ManualLoop
) -> None:
    connection, _ = connected(pool, loop)
    pool.give(connection)

    match spoil:
        case "abort":
            connection.abort()
        case "bytes":
            connection.data_received(b"\r")
        case "end":
            connection.eof_received()
        case _:
            connection.connection_lost(ConnectionResetError())

    assert pool.take(PLACE) is None


def test_connection_waits_no_longer_than_it_may(pool: Pool, loop: ManualLoop) -> None:
    connection, tape = connected(pool, loop)
    pool.give(connection)

    loop.now_s += KEEPALIVE_S + 0.1

    assert pool.take(PLACE) is None
    assert tape.is_aborted


def test_connection_is_taken_as_long_as_it_may_wait(pool: Pool, loop: ManualLoop) -> None:
    connection, _ = connected(pool, loop)
    pool.give(connection)

    loop.now_s += KEEPALIVE_S

    assert pool.take(PLACE) is connection


def test_idle_connections_are_closed_without_being_asked_for(pool: Pool, loop: ManualLoop) -> None:
    tapes = []
    for place in (PLACE, ELSEWHERE, PLACE):
        connection, tape = connected(pool, loop, place)
        pool.give(connection)
        tapes.append(tape)
        loop.advance(loop.now_s + 10)

    loop.advance(loop.now_s + 5)
    assert [tape.is_aborted for tape in tapes] == [True, False, False]
    loop.advance(loop.now_s + KEEPALIVE_S)

    assert [tape.is_aborted for tape in tapes] == [True, True, True]
    assert pool.idle_count == 0
    assert loop.timers == []


def test_closed_pool_keeps_nothing(pool: Pool, loop: ManualLoop) -> None:
    idle, used = connected(pool, loop), connected(pool, loop)
    pool.give(idle[0])

    pool.close()
    pool.give(used[0])

    assert (idle[1].is_aborted, used[1].is_aborted) == (True, True)
    assert (pool.idle_count, loop.timers) == (0, [])


def test_connection_carries_so_many_requests_and_no_more(pool: Pool, loop: ManualLoop) -> None:
    connection, tape = connected(pool, loop)
    for _ in range(REUSE.max_requests - 1):
        pool.give(connection)
        assert pool.take(PLACE) is connection
    assert not tape.is_aborted, "what is under way on it is not cut"

    pool.give(connection)

    assert pool.take(PLACE) is None
    assert tape.is_aborted


def test_connection_that_is_old_carries_no_further_request(pool: Pool, loop: ManualLoop) -> None:
    connection, tape = connected(pool, loop)
    loop.now_s += REUSE.max_age_s - 1
    pool.give(connection)
    assert pool.take(PLACE) is connection

    loop.now_s += 1
    assert not tape.is_aborted, "what is under way on it is not cut"
    pool.give(connection)

    assert pool.take(PLACE) is None
    assert tape.is_aborted


def test_other_bounds_hold_from_then_on(pool: Pool, loop: ManualLoop) -> None:
    connection, _ = connected(pool, loop)
    pool.reuse = Reuse(max_requests=1)

    pool.give(connection)

    assert pool.take(PLACE) is None
