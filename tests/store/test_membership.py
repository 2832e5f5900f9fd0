"""Who is dead is judged by the server's silence and by what the worker watched itself."""

import pytest

from cluster_gw.errors import StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.membership import Membership
from cluster_gw.store.scripts import Scripts
from tests.fakes.redis_server import RedisServer
from tests.store.clocks import NOW_MS, SharedClock


class Group:
    """Some workers on one clock; each beats only when it is told to."""

    def __init__(self, client: RedisClient, scripts: Scripts) -> None:
        self.clock = SharedClock()
        self._client, self._scripts = client, scripts

    def worker(self, name: str) -> Membership:
        return Membership(
            self._client,
            self._scripts,
            Keys("gw1"),
            worker_id=name,
            monotonic_s=self.clock.monotonic_s,
            server_now_ms=self.clock.server_now_ms,
        )

    async def beat_for(self, seconds: float, *workers: Membership) -> None:
        """Let time pass with a beat of each worker every second, the last one at the end."""
        for _ in range(round(seconds)):
            self.clock.pass_s(1.0)
            for worker in workers:
                await worker.beat()


@pytest.fixture
def group(client: RedisClient, scripts: Scripts) -> Group:
    return Group(client, scripts)


def ids(worker: Membership) -> list[str]:
    return [dead.id for dead in worker.dead()]


async def test_workers_that_beat_are_alive(group: Group) -> None:
    one, other = group.worker("one"), group.worker("other")

    await group.beat_for(10, one, other)

    assert (one.alive, other.alive) == (2, 2)
    assert ids(one) == []


async def test_silent_worker_is_dead_after_four_seconds(group: Group) -> None:
    one, other = group.worker("one"), group.worker("a b")
    await group.beat_for(5, one, other)

    await group.beat_for(3, one)
    group.clock.pass_s(0.9)
    assert ids(one) == []
    group.clock.pass_s(0.1)

    (dead,) = one.dead()
    assert (dead.id, dead.beat_ms) == ("a%20b", NOW_MS + 5_000)
    await one.beat()
    assert one.alive == 1


async def test_worker_that_is_heard_again_is_not_dead(group: Group) -> None:
    one, other = group.worker("one"), group.worker("other")
    await group.beat_for(5, one, other)
    await group.beat_for(5, one)
    assert ids(one) == ["other"]

    await other.beat()
    await one.beat()

    assert ids(one) == []


async def test_nobody_is_dead_for_a_worker_that_has_just_come(group: Group) -> None:
    await group.worker("old").beat()
    group.clock.pass_s(60)
    one = group.worker("one")

    await one.beat()
    await group.beat_for(2, one)
    assert ids(one) == []
    await group.beat_for(1, one)

    assert ids(one) == ["old"]


async def test_nobody_is_dead_because_redis_was_away(group: Group) -> None:
    one, other = group.worker("one"), group.worker("other")
    await group.beat_for(5, one, other)
    await group.beat_for(2, one)  # the silence of the other has begun to be watched
    group.clock.pass_s(30)  # and then nobody could beat

    await one.beat()
    group.clock.pass_s(1.4)
    assert ids(one) == []
    await group.beat_for(2, one, other)

    assert ids(one) == []


async def test_nobody_is_dead_because_the_server_s_clock_was_set_forward(group: Group) -> None:
    one, other = group.worker("one"), group.worker("other")
    await group.beat_for(5, one, other)
    group.clock.server_step_ms = 600_000

    await one.beat()
    assert ids(one) == []
    group.clock.pass_s(1.0)
    await other.beat()
    await one.beat()

    assert ids(one) == []


async def test_worker_that_left_is_neither_alive_nor_dead(group: Group) -> None:
    one, other = group.worker("one"), group.worker("other")
    await group.beat_for(5, one, other)

    await other.leave()
    await group.beat_for(6, one)

    assert (one.alive, ids(one)) == (1, [])


async def test_dead_worker_can_be_forgotten(group: Group) -> None:
    one, other = group.worker("one"), group.worker("other")
    await group.beat_for(5, one, other)
    await group.beat_for(5, one)
    (dead,) = one.dead()

    await one.forget(dead)

    assert ids(one) == []
    await one.beat()
    assert ids(one) == []


async def test_beat_says_when_redis_is_away(own_server: RedisServer, scripts: Scripts) -> None:
    client = RedisClient(own_server.url, prefix="gw1")
    await client.start(5.0)
    one = Group(client, scripts).worker("one")
    await one.beat()
    own_server.kill()

    with pytest.raises(StoreLostError):
        await one.beat()

    assert one.alive == 1
    await client.close()
