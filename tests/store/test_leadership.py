"""One worker has a role at a time, and knows when it can no longer be sure of it."""

import pytest

from cluster_gw.errors import StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.leadership import Leadership
from cluster_gw.store.scripts import Scripts
from tests.fakes.redis_server import RedisServer
from tests.store.clocks import NOW_MS, SharedClock


@pytest.fixture
def clock() -> SharedClock:
    return SharedClock()


def candidate(
    client: RedisClient, scripts: Scripts, clock: SharedClock, name: str, role: str = "reaper"
) -> Leadership:
    return Leadership(
        client,
        scripts,
        Keys("gw1"),
        role=role,
        worker_id=name,
        monotonic_s=clock.monotonic_s,
        server_now_ms=clock.server_now_ms,
    )


def has_role(worker: Leadership) -> bool:
    return worker.term is not None


async def test_first_candidate_has_the_role_and_keeps_it(
    client: RedisClient, scripts: Scripts, clock: SharedClock
) -> None:
    one, other = (candidate(client, scripts, clock, name) for name in ("one", "other"))
    first = await one.campaign()

    for _ in range(5):
        clock.pass_s(1.0)
        kept = await one.campaign()
        assert await other.campaign() is None

    assert first is not None
    assert kept is not None
    assert first.fence == kept.fence == NOW_MS
    assert (kept.until_s, kept.until_ms) == (8.0, NOW_MS + 8_000)
    assert other.term is None


async def test_another_has_the_role_when_its_owner_falls_silent(
    client: RedisClient, scripts: Scripts, clock: SharedClock
) -> None:
    one, other = (candidate(client, scripts, clock, name) for name in ("one", "other"))
    first = await one.campaign()

    clock.pass_s(3.0)
    second = await other.campaign()

    assert first is not None
    assert second is not None
    assert second.fence > first.fence
    assert one.term is None
    assert await one.campaign() is None


async def test_term_ends_for_its_owner_without_asking(
    client: RedisClient, scripts: Scripts, clock: SharedClock
) -> None:
    one = candidate(client, scripts, clock, "one")
    await one.campaign()

    clock.pass_s(2.9)
    assert has_role(one)
    clock.pass_s(0.1)

    assert not has_role(one)


async def test_role_that_was_given_up_is_free_at_once(
    client: RedisClient, scripts: Scripts, clock: SharedClock
) -> None:
    one, other = (candidate(client, scripts, clock, name) for name in ("one", "other"))
    await one.campaign()
    await other.resign()
    assert has_role(one)

    await one.resign()

    assert not has_role(one)
    assert await other.campaign() is not None


async def test_roles_do_not_know_of_each_other(
    client: RedisClient, scripts: Scripts, clock: SharedClock
) -> None:
    assert await candidate(client, scripts, clock, "one", "reaper").campaign() is not None
    assert await candidate(client, scripts, clock, "other", "snapshot").campaign() is not None


async def test_term_goes_on_to_its_end_while_redis_is_away(
    own_server: RedisServer, scripts: Scripts, clock: SharedClock
) -> None:
    client = RedisClient(own_server.url, prefix="gw1")
    await client.start(5.0)
    one = candidate(client, scripts, clock, "one")
    await one.campaign()
    own_server.kill()

    with pytest.raises(StoreLostError):
        await one.campaign()
    assert has_role(one)
    clock.pass_s(3.0)

    assert not has_role(one)
    await client.close()
