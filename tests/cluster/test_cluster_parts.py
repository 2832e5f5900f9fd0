"""One master of a cluster is away: its accounts are served of shares, all others by Redis."""

import contextlib
from collections.abc import Iterator

import pytest

from cluster_gw.errors import StoreLostError
from cluster_gw.store.admission import Lease
from tests.fakes.redis_cluster import RedisCluster
from tests.fakes.redis_server import needed_redis
from tests.fakes.waiting import until_soon
from tests.lua.window_fields import present
from tests.store.lone_worker import DONE, KEYS, LoneWorker, target

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

BACK_S = 15.0


@pytest.fixture
def cluster() -> Iterator[RedisCluster]:
    binary = needed_redis()
    with RedisCluster(binary) as cluster:
        yield cluster


def window(account: str) -> str:
    return KEYS.model_window(KEYS.slot("p", account), "k", "m")


def two_accounts(cluster: RedisCluster) -> tuple[str, str]:
    """An account whose master can be lost, and one of another master."""
    guarded = cluster.guarded_master()
    names = [f"acc{number}" for number in range(30)]
    lost = next(name for name in names if cluster.master_of(window(name)) is guarded)
    kept = next(name for name in names if cluster.master_of(window(name)) is not guarded)
    return lost, kept


async def used(worker: LoneWorker, account: str) -> Lease:
    lease = await worker.granted(f"{account}-{worker.alone.grants}", target(account=account))
    worker.admissions.settle(lease, DONE)
    return lease


async def notice(worker: LoneWorker, account: str) -> None:
    """Ask in vain until the account's part counts as away."""
    for number in range(100):
        with contextlib.suppress(StoreLostError):
            await worker.reserve(f"vain-{number}", target(account=account))
        worker.clock.pass_s(0.1)
        if worker.admissions.is_alone(target(account=account)):
            return
    raise AssertionError("it was never lost")


async def test_only_the_part_that_is_away_is_served_of_shares(cluster: RedisCluster) -> None:
    lost, kept = two_accounts(cluster)
    async with LoneWorker(None, url=cluster.url) as worker:
        await until_soon(lambda: worker.client.is_up)
        cluster.master_of(window(lost)).kill()

        await notice(worker, lost)

        assert (await used(worker, lost)).is_local
        assert not (await used(worker, kept)).is_local
        assert worker.alone.is_away
        await until_soon(lambda: not worker.alone.doubts, BACK_S)
        assert await worker.admissions.drain(5.0) == 0

        assert not (await worker.granted("again", target(account=lost))).is_local
        text = await worker.client.call("HGET", window(lost), "now")
        now = present({"now": text.decode()})
        assert (now["pr"], now["i"]) == (2, 1)
