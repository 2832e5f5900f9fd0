import asyncio

import pytest

from cluster_gw.store.bonds import NOT_ASKED, UNKNOWN, Bonds
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import ComboId, RouteId
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon

KEYS = Keys("gw1")
COMBO, A, B = ComboId("auto"), RouteId("p/a"), RouteId("p/b:c@d")


@pytest.fixture
async def bonds(client: RedisClient, scripts: Scripts) -> Bonds:
    return Bonds(client, scripts, KEYS)


async def bound(bonds: Bonds, scope: str = "run", key: str = "k1") -> RouteId | None:
    return (await bonds.recall(bonds.pin(COMBO, "1", scope, key, 60_000))).route


async def test_route_is_remembered_by_scope_and_key(bonds: Bonds) -> None:
    place = bonds.pin(COMBO, "1", "run", "k1", 60_000)
    bonds.bind(place, await bonds.recall(place), B)
    await asyncio.sleep(0)

    assert await bound(bonds) == B
    assert await bound(bonds, key="k2") is None
    assert await bound(bonds, scope="session") is None


async def test_who_did_not_look_counts_as_the_latest(bonds: Bonds) -> None:
    place = bonds.pin(COMBO, "1", "run", "k1", 60_000)
    older = await bonds.recall(place)

    bonds.bind(place, NOT_ASKED, A)
    bonds.bind(place, older, B)

    assert await bound(bonds) == A


async def test_another_epoch_remembers_nothing(bonds: Bonds) -> None:
    old, new = bonds.last_good(COMBO, "1"), bonds.last_good(COMBO, "2")
    bonds.bind(old, await bonds.recall(old), A)

    assert (await bonds.recall(old)).route == A
    assert (await bonds.recall(new)).route is None


async def test_combo_with_odd_characters_has_a_key_of_its_own(bonds: Bonds) -> None:
    one, other = (bonds.last_good(ComboId(name), "1") for name in ("a:{b}", "a:%7Bb%7D"))

    assert one.record != other.record


async def test_without_redis_nothing_is_known_and_nothing_is_written(
    own_server: RedisServer, scripts: Scripts
) -> None:
    client = RedisClient(own_server.url, prefix="gw1", deadline_s=0.15)
    await client.start(5.0)
    bonds = Bonds(client, scripts, KEYS)
    place = bonds.last_good(COMBO, "1")
    told = await bonds.recall(place)
    own_server.kill()
    await until_soon(lambda: not client.is_up)

    assert await bonds.recall(place) == UNKNOWN
    bonds.bind(place, told, A)
    bonds.bind(place, UNKNOWN, A)  # nothing was told, so nothing is sent

    assert (bonds.unread, bonds.unwritten) == (1, 1)
    await client.close()
