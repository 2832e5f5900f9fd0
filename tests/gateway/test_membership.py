"""When a worker is on the list of the living."""

import asyncio
import time
from collections.abc import Iterator

import pytest

from tests.fakes.gateway import Gateway, provider
from tests.fakes.redis_server import RedisServer, needed_redis

LISTED = ("ZSCORE", "gw1:{mem}:workers", "w1")
NOBODY = b"$-1\r\n"


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer(needed_redis()) as running:
        yield running


def gateway(server: RedisServer) -> Gateway:
    return Gateway(
        {
            "providers": {"a": provider("http://127.0.0.1:9/v1")},
            "keys": [{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
            "models": [{"provider": "a", "model": "one"}],
            "combos": [
                {"id": "auto", "family": "classic", "strategy": "priority", "members": "all"}
            ],
            "default_combo": "auto",
        },
        server.url,
    )


async def until_listed(server: RedisServer, within_s: float = 5.0) -> None:
    until_s = time.monotonic() + within_s
    while server.command(*LISTED) == NOBODY:
        assert time.monotonic() < until_s
        await asyncio.sleep(0.01)


async def test_worker_is_listed_before_it_serves_and_gone_when_it_has_ended(
    server: RedisServer,
) -> None:
    async with gateway(server):
        assert server.command(*LISTED) != NOBODY

    assert server.command(*LISTED) == NOBODY


async def test_worker_is_listed_again_as_soon_as_redis_is_back(server: RedisServer) -> None:
    async with gateway(server):
        server.kill()
        server.start()

        await until_listed(server)


async def test_worker_with_something_unsettled_stays_listed(server: RedisServer) -> None:
    async with gateway(server) as worker:
        await worker.engine.coordination.leave(is_clear=False)

        assert server.command(*LISTED) != NOBODY
