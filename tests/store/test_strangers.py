"""Strangers are counted in Redis, and nobody waits for it once it did not answer."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from cluster_gw.errors import StoreLostError
from cluster_gw.store.alone import AwayError
from cluster_gw.store.scripts import load_scripts
from cluster_gw.store.strangers import Strangers
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.fakes.waiting import until_soon
from tests.store.lone_worker import KEYS, LoneWorker

pytestmark = pytest.mark.timeout(30)

AT_ONCE_S = 0.1  # the deadline of a call is five times that


@pytest.fixture
async def worker() -> AsyncIterator[LoneWorker]:
    with RedisServer(needed_redis()) as server:
        async with LoneWorker(server) as worker:
            yield worker


async def test_frozen_redis_is_waited_for_once_and_not_again_before_it_answers(
    worker: LoneWorker,
) -> None:
    strangers = Strangers(worker.client, load_scripts(), KEYS)
    strangers.go_on_with(worker.alone)
    worker.server.freeze()

    with pytest.raises(StoreLostError):
        await strangers.count("192.0.2.1")
    async with asyncio.timeout(AT_ONCE_S):
        for _ in range(5):
            with pytest.raises(AwayError):
                await strangers.count("192.0.2.1")
    worker.server.thaw()
    await until_soon(lambda: not worker.alone.doubts)

    assert (await strangers.count("192.0.2.2")).count == 1
