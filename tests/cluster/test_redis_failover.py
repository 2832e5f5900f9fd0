"""The whole gateway on Sentinel and on a cluster: the master of its counters dies under load."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from cluster_gw.store.keys import Keys
from cluster_gw.supervisor.redis_door import RedisDoor
from tests.cluster.load import Outcomes, spread
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_cluster import RedisCluster
from tests.fakes.redis_nodes import RedisNode
from tests.fakes.redis_sentinel import SentinelService
from tests.fakes.redis_server import needed_redis

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

RPM = 250
DEADLINE_S = 3.0
KILL_AT_S = 1.0
OUT_S = 6.0
LOAD_S = 8.5
KEYS = Keys("gw1")
WINDOW = KEYS.model_window(KEYS.slot("a", "a1"), "a1", "sim-small")


async def load_and_kill(group: GatewayGroup, master: RedisNode) -> Outcomes:
    """Sixty requests a second; the master dies while the window is far from used up."""
    url = f"{group.base_url}/v1/chat/completions"
    headers = {"X-Gw-Timeout": f"{DEADLINE_S}s"}
    count = round(60 * LOAD_S)
    running = asyncio.create_task(spread(url, chat(), count=count, over_s=LOAD_S, headers=headers))
    await asyncio.sleep(KILL_AT_S)
    await asyncio.to_thread(master.kill)
    return await running


def judge(url: str, master_now: Callable[[], RedisNode]) -> None:
    """Serve, kill, and hold what clients saw against what the provider counted."""
    with (
        SimulatedProvider({"any_key": True, "any_model": True, "enforce": False}) as provider,
        GatewayGroup(one_model(provider.base_url, rpm=RPM), workers=2, redis_url=url) as group,
    ):
        first = master_now()
        outcomes = asyncio.run(load_and_kill(group, first))
        (key,) = provider.stats()["keys"].values()
        door = RedisDoor(url, 2.0)
        counted = door.call(["HGET", WINDOW, "now"])
        door.close()
        assert group.stop() == 0, group.log()
        log = group.log()

    assert master_now() is not first
    assert set(outcomes.statuses) <= {200, 429, 503}
    assert outcomes.longest_s < DEADLINE_S + 0.5
    assert key["peak_requests_60s"] <= RPM
    assert max(outcomes.served_at_s) > KILL_AT_S + 1.0  # it went on
    times = sorted(outcomes.served_at_s)
    assert max(after - before for before, after in pairwise(times)) <= OUT_S
    # Newest second, requests, tokens: what Redis holds is what the provider saw.
    assert isinstance(counted, bytes)
    assert int(counted.split()[3]) == key["accepted"] == outcomes.statuses[200]
    assert '"event":"redis.lost"' in log
    assert "password" not in log


def test_gateway_follows_sentinel_and_exceeds_nothing() -> None:
    with SentinelService(needed_redis()) as service:
        judge(service.url, service.master)


def test_gateway_follows_the_cluster_and_exceeds_nothing() -> None:
    with RedisCluster(needed_redis()) as cluster:
        judge(cluster.url, lambda: cluster.master_of(WINDOW))
