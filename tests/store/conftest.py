import asyncio
import gc
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from typing import Any

import pytest
import uvloop

from cluster_gw.store.admission import Admissions
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts, load_scripts
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.store.clocks import ManualClock

LeftOpen = Callable[[Iterable[Coroutine[Any, Any, None]]], list[str]]


@pytest.fixture(scope="session")
def shared_server() -> Iterator[RedisServer]:
    with RedisServer(needed_redis()) as server:
        yield server


@pytest.fixture
def redis_server(shared_server: RedisServer) -> RedisServer:
    """An empty server that other tests use too: do not freeze or kill it."""
    shared_server.command("FLUSHALL")
    return shared_server


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """A server that a test may freeze, kill and restart."""
    with RedisServer(needed_redis()) as server:
        yield server


@pytest.fixture
async def client(redis_server: RedisServer) -> AsyncIterator[RedisClient]:
    client = RedisClient(redis_server.url, prefix="gw1")
    await client.start(5.0)
    yield client
    await client.close()


@pytest.fixture(scope="session")
def scripts() -> Scripts:
    return load_scripts()


@pytest.fixture
def keys() -> Keys:
    return Keys("gw1")


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Of a server that accepts connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        yield listener.getsockname()[1]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def left_open(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> LeftOpen:
    """Runs each work in a loop of its own and tells what they left for the collector to close."""

    def run(works: Iterable[Coroutine[Any, Any, None]]) -> list[str]:
        gc.collect()
        left: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(sys, "unraisablehook", lambda one: left.append(repr(one.exc_value)))
            for work in works:
                with asyncio.Runner(loop_factory=request.param) as runner:
                    runner.run(work)
            gc.collect()
        return left

    return run


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def admissions_of(client: RedisClient, scripts: Scripts, clock: ManualClock) -> Admissions:
    return Admissions(
        client,
        scripts,
        Keys("gw1"),
        worker_id="worker 1",
        clock_ms=clock.wall_ms,
        monotonic_s=clock.monotonic_s,
    )


@pytest.fixture
async def admissions(
    client: RedisClient, scripts: Scripts, clock: ManualClock
) -> AsyncIterator[Admissions]:
    admissions = admissions_of(client, scripts, clock)
    yield admissions
    await admissions.close()
