"""Pins on a cluster: a walk goes over all nodes; what workers say of themselves is in one slot."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from cluster_gw.store.audit import Audit, Entry
from cluster_gw.store.bonds import Bond, Bonds
from cluster_gw.store.client import RedisClient
from cluster_gw.store.fleet import Fleet
from cluster_gw.store.keys import Keys
from cluster_gw.store.membership import Membership
from cluster_gw.store.pins import Pins, WhichPins
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import ComboId
from tests.fakes.redis_masters import TwoMasters
from tests.fakes.redis_server import needed_redis

KEYS, SCRIPTS = Keys("gw1"), load_scripts()
COMBOS = [f"combo{number}" for number in range(8)]
ENTRY = Entry(
    id="1", actor="a", address="-", method="PUT", path="/api/x", status=200, config_version=1
)


@pytest.fixture(scope="module")
def masters() -> Iterator[TwoMasters]:
    with TwoMasters(needed_redis()) as running:
        yield running


@pytest.fixture
async def client(masters: TwoMasters) -> AsyncIterator[RedisClient]:
    found = RedisClient(masters.url, prefix="gw1")
    await found.start(5.0)
    yield found
    await found.close()


async def test_pins_on_all_nodes_are_found_and_removed(client: RedisClient) -> None:
    bonds = Bonds(client, SCRIPTS, KEYS)
    for combo in COMBOS:
        place = bonds.pin(ComboId(combo), "1", "run", "ab", 60_000)
        bonds.bind(place, Bond(turn=1), "p/m", is_urgent=True)
        await bonds.look(place)
    pins = Pins(client, KEYS, monotonic_s=time.monotonic)

    found = await pins.find(WhichPins(), 100)
    some = await pins.find(WhichPins(), 3)
    one = await pins.remove(WhichPins(combo=COMBOS[0]))
    rest = await pins.remove(WhichPins())

    assert ([pin.combo for pin in found.pins], found.is_complete) == (COMBOS, True)
    assert (len(some.pins), some.is_complete) == (3, False)
    assert (one, rest) == ((1, True), (7, True))


async def test_walk_that_takes_too_long_says_so(client: RedisClient) -> None:
    times = iter(range(0, 1000, 100))
    for number in range(3000):
        client.submit("SET", f"gw1:other:{number}", "1", "PX", 5000)
    await client.call("PING")

    found = await Pins(client, KEYS, monotonic_s=lambda: next(times)).find(WhichPins(), 10)

    assert not found.is_complete


async def test_workers_report_and_changes_are_noted_there_too(client: RedisClient) -> None:
    loop = asyncio.get_running_loop()
    member = Membership(client, SCRIPTS, KEYS, worker_id="w1", monotonic_s=loop.time)
    await member.beat()
    fleet, audit = Fleet(client, SCRIPTS, KEYS, worker_id="w1"), Audit(client, SCRIPTS, KEYS)

    drained = await fleet.drain(["w1"], drained=True)
    await audit.note(ENTRY)

    assert drained.workers == ("w1",)
    assert [one.entry for one in await audit.latest(5)] == [ENTRY]
