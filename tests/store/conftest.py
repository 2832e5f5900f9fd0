from collections.abc import AsyncIterator, Iterator

import pytest

from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts, load_scripts
from tests.fakes.redis_server import RedisServer, redis_binary


@pytest.fixture(scope="session")
def shared_server() -> Iterator[RedisServer]:
    binary = redis_binary()
    if binary is None:
        pytest.skip("no redis-server on this machine")
    with RedisServer(binary) as server:
        yield server


@pytest.fixture
def redis_server(shared_server: RedisServer) -> RedisServer:
    """An empty server that other tests use too: do not freeze or kill it."""
    shared_server.command("FLUSHALL")
    return shared_server


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """A server that a test may freeze, kill and restart."""
    binary = redis_binary()
    if binary is None:
        pytest.skip("no redis-server on this machine")
    with RedisServer(binary) as server:
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
