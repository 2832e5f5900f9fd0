"""A target that was busy all day needs no more of Redis than is said of it."""

from collections.abc import Iterator

import pytest

from cluster_gw.store.client import RedisClient
from tests.fakes.busy_day import SETTINGS, WINDOW_BYTES_MAX, bytes_of_a_target, fill, target
from tests.fakes.redis_server import RedisServer, redis_binary, valkey_binary

TARGETS = 40


@pytest.fixture(params=[redis_binary, valkey_binary])
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A server with the settings that are advised."""
    binary = request.param()
    if binary is None:
        pytest.skip("this server is not on this machine")
    with RedisServer(binary, *SETTINGS) as running:
        yield running


async def test_counters_of_a_thousand_busy_targets_fit_in_two_and_a_half_megabytes(
    server: RedisServer,
) -> None:
    client = RedisClient(server.url, prefix="gw1", deadline_s=10.0)
    await client.start(10.0)
    await fill(client, TARGETS)

    windows, _, _ = await bytes_of_a_target(client, TARGETS)

    window = f"gw1:w:{{openai.{target(1).account}}}:{target(1).key}:{target(1).model}"
    assert await client.call("HLEN", window) == 1 + 24 + 61
    assert windows <= WINDOW_BYTES_MAX
    await client.close()
