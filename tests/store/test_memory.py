"""A target that was busy all week needs no more of Redis than is said of it."""

from collections.abc import Iterator

import pytest

from cluster_gw.store.client import RedisClient
from cluster_gw.store.statistics import FIELDS, PAST
from tests.fakes.busy_day import KEYS, SETTINGS, TARGET_BYTES_MAX, target
from tests.fakes.busy_week import bytes_of_all, fill_week, whole_health
from tests.fakes.redis_server import RedisServer, redis_binary, valkey_binary

TARGETS = 5


@pytest.fixture(params=[redis_binary, valkey_binary])
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A server with the settings that are advised."""
    binary = request.param()
    if binary is None:
        pytest.skip("this server is not on this machine")
    with RedisServer(binary, *SETTINGS) as running:
        yield running


@pytest.mark.parametrize("per_second", [1, 30])
async def test_a_thousand_targets_busy_for_a_week_fit_in_two_and_a_half_megabytes(
    server: RedisServer, per_second: int
) -> None:
    client = RedisClient(server.url, prefix="gw1", deadline_s=10.0)
    await client.start(10.0)

    await fill_week(client, TARGETS, per_second=per_second)

    await assert_full(client)
    assert await bytes_of_all(client, TARGETS) <= TARGET_BYTES_MAX
    await client.close()


async def assert_full(client: RedisClient) -> None:
    """All buckets of a target hold something, and all its records are there."""
    one = target(1)
    slot = KEYS.slot(one.provider, one.account)
    window = KEYS.model_window(slot, one.key, one.model)
    statistics = KEYS.statistics(slot, one.key, one.model)
    fields = ["now", *(f"s{at}" for at in range(9)), *(f"d{at}" for at in range(4))]
    assert sorted(map(bytes.decode, await client.call("HKEYS", window))) == sorted(fields)
    past = await client.call("HMGET", statistics, *PAST)
    assert len(b"".join(past)) == 28 * 14
    assert b"\0\0" not in b"".join(past)
    assert await client.call("HLEN", statistics) == len([*FIELDS, *PAST, "month"])
    health = KEYS.health(slot, one.key, one.model)[0]
    assert await client.call("HLEN", health) == len(whole_health(0))
