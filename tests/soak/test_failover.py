"""Masters die and freeze again and again, and slots move, under admissions that never pause."""

import asyncio
import random
from typing import Final

import pytest

from tests.cluster.failover_load import ACCOUNTS, FREE, FailoverLoad, window
from tests.fakes.redis_cluster import RedisCluster
from tests.fakes.redis_nodes import RedisNode
from tests.fakes.redis_sentinel import SentinelService
from tests.fakes.redis_server import needed_redis

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

ROUNDS: Final = 6
OUT_S: Final = 6.0
FROZEN_S: Final = 1.5  # after it was left


@pytest.fixture
def binary() -> str:
    return needed_redis()


async def lose(
    load: FailoverLoad, master: RedisNode, topology: RedisCluster | SentinelService, *, kills: bool
) -> None:
    """Kill or freeze a master, wait until others serve, and bring it back as a replica."""
    if kills:
        await asyncio.to_thread(master.kill)
    else:
        master.freeze()
    await load.served_anew(OUT_S)
    if kills:
        await asyncio.to_thread(topology.revive, master)
    else:
        await asyncio.sleep(FROZEN_S)
        master.thaw()
    await asyncio.to_thread(topology.wait_for_links)
    await load.up_again(OUT_S)


async def test_sentinel_loses_one_master_after_the_other(binary: str) -> None:
    chance = random.Random(1)
    with SentinelService(binary) as service:
        async with FailoverLoad(service.url, lambda _: service.master()) as load:
            await asyncio.sleep(1.0)
            for number in range(ROUNDS):
                await lose(load, service.master(), service, kills=number % 2 == 0)
                await asyncio.sleep(chance.uniform(0.5, 2.0))
        load.check()


async def test_cluster_loses_masters_while_its_slots_move(binary: str) -> None:
    chance = random.Random(2)
    with RedisCluster(binary) as cluster:
        async with FailoverLoad(cluster.url, cluster.master_of) as load:
            await asyncio.sleep(1.0)
            for number in range(ROUNDS):
                name = window(chance.randrange(ACCOUNTS), FREE)
                await lose(load, cluster.master_of(name), cluster, kills=number % 2 == 0)
                for account in chance.sample(range(ACCOUNTS), 3):
                    moved = window(account, FREE)
                    source = await asyncio.to_thread(cluster.master_of, moved)
                    target = await asyncio.to_thread(cluster.other_master, source)
                    await asyncio.to_thread(cluster.move_slot, moved, target)
                await load.served_anew(OUT_S)
        load.check()
