from collections.abc import Iterator

import pytest
from redis import Redis
from redis.commands.core import Script

from cluster_gw.store.rights import user_rule
from cluster_gw.store.scripts import Scripts, find_folder, load_scripts
from tests.fakes.redis_server import RedisServer, redis_binary, valkey_binary
from tests.lua.window_fields import ANY_BYTES


def started(binary: str | None) -> Iterator[RedisServer]:
    if binary is None:
        pytest.skip("this server is not on this machine")
    with RedisServer(binary) as server:
        yield server


@pytest.fixture(scope="session")
def redis_7() -> Iterator[RedisServer]:
    yield from started(redis_binary())


@pytest.fixture(scope="session")
def valkey() -> Iterator[RedisServer]:
    yield from started(valkey_binary())


@pytest.fixture(params=["redis_7", "valkey"])
def each_server(request: pytest.FixtureRequest) -> Redis:
    """An empty server of each kind in turn."""
    server: RedisServer = request.getfixturevalue(request.param)
    return connected(server)


@pytest.fixture
def redis(redis_7: RedisServer) -> Redis:
    """An empty Redis 7.0."""
    return connected(redis_7)


class Watched(Redis):
    """Looks at everything; scripts run with no more rights than `docs/redis-acl.md` gives."""

    def register_script(self, script: str) -> Script:  # type: ignore[override]
        """Have a script run by the user that the page describes, on keys of any prefix."""
        limited = Redis.from_url(
            f"unix://gateway:password@{self.connection_pool.connection_kwargs['path']}",
            protocol=2,
            decode_responses=True,
            encoding_errors=ANY_BYTES,
        )
        return limited.register_script(script)


def connected(server: RedisServer) -> Redis:
    link = Watched.from_url(
        server.url, protocol=2, decode_responses=True, encoding_errors=ANY_BYTES
    )
    link.flushall()
    link.execute_command(*user_rule(find_folder()), "~*")  # type: ignore[no-untyped-call]
    return link


@pytest.fixture(scope="session")
def scripts() -> Scripts:
    return load_scripts()
