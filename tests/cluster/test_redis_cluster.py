"""Three masters with replicas: one killed, one frozen, slots moved, all under admissions."""

import asyncio
from collections.abc import Iterator

import pytest

from cluster_gw.store.cluster import Cluster
from tests.cluster.failover_load import ACCOUNTS, FREE, FailoverLoad, window
from tests.cluster.pools import one_model
from tests.fakes.admin import ENVIRON, call
from tests.fakes.group import GatewayGroup, get_json
from tests.fakes.redis_cluster import RedisCluster
from tests.fakes.redis_server import needed_redis
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

OUT_S = 6.0


@pytest.fixture(scope="module")
def running() -> Iterator[RedisCluster]:
    with RedisCluster(needed_redis()) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: RedisCluster) -> RedisCluster:
    """Empty, and all of it works."""
    running.clear()
    return running


async def test_killed_master_is_followed_and_nothing_is_counted_twice(
    cluster: RedisCluster,
) -> None:
    first = cluster.guarded_master()
    async with FailoverLoad(cluster.url, cluster.master_of) as load:
        await asyncio.sleep(1.0)
        assert load.client.is_up

        first.kill()

        await load.served_anew(OUT_S)
        await load.up_again(2.0)
        await asyncio.sleep(0.5)
        route = load.client._route
        assert isinstance(route, Cluster)
        assert first.port not in {server.port for server in route._links}
    assert first not in cluster.masters()
    load.check()


async def test_frozen_master_is_left_and_has_no_say_when_it_wakes(cluster: RedisCluster) -> None:
    first = cluster.guarded_master()
    async with FailoverLoad(cluster.url, cluster.master_of) as load:
        await asyncio.sleep(1.0)

        first.freeze()

        await load.served_anew(OUT_S)
        first.thaw()
        await asyncio.sleep(1.5)
    assert first not in cluster.masters()
    load.check()


async def test_slots_move_under_load_without_a_call_lost_for_long(cluster: RedisCluster) -> None:
    names = [window(account, FREE) for account in range(ACCOUNTS)]
    async with FailoverLoad(cluster.url, cluster.master_of) as load:
        for _ in range(3):
            for name in names:
                source = await asyncio.to_thread(cluster.master_of, name)
                target = await asyncio.to_thread(cluster.other_master, source)
                await asyncio.to_thread(cluster.move_slot, name, target)
            await load.served_anew(OUT_S)
    assert load.longest_gap_s < 1.0
    load.check()


def test_change_of_the_configuration_reaches_another_group(cluster: RedisCluster) -> None:
    config = one_model("http://127.0.0.1:9/v1")  # nothing is sent there
    with (
        GatewayGroup(config, workers=1, redis_url=cluster.url, environ=ENVIRON) as first,
        GatewayGroup(config, workers=1, redis_url=cluster.url, environ=ENVIRON) as second,
    ):
        body = {"weight": 0.5}
        version = call(first.admin_url, "PUT", "/api/models/a/sim-small", body).body

        until(
            lambda: (
                get_json(f"{second.admin_url}/readyz")["config_version"]
                == version["config_version"]
            ),
            2.0,
        )
        shown = call(second.admin_url, "GET", "/api/models/a/sim-small").body
        assert (shown["weight"], version["config_version"]) == (0.5, 2)
