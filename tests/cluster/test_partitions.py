"""Some workers are cut off from Redis, the others are not: what both sides take is bounded."""

import asyncio
from typing import Any, Final

import msgspec
import pytest

from tests.cluster.lost_load import (
    Load,
    binary,
    counted,
    is_settled,
    is_trusted,
    metric,
    numbers_of,
    simulated,
    until,
)
from tests.cluster.pools import one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_island import RedisIsland, why_not
from tests.fakes.redis_server import RedisServer
from tests.fakes.relay import Relay

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

RPM: Final = 300
RPD: Final = 6000
WORKERS: Final = 3  # two in one group, one in the other
SHARE: Final = RPM // (2 * WORKERS)
PER_S: Final = 40
AWAY_S: Final = 15.0


class Sides(msgspec.Struct, frozen=True):
    """Two groups that share everything but their way to Redis."""

    many: GatewayGroup
    alone: GatewayGroup


def configuration(provider: SimulatedProvider) -> dict[str, Any]:
    return one_model(provider.base_url, rpm=RPM, rpd=RPD)


async def both_settled(sides: Sides) -> None:
    for group in (sides.many, sides.alone):
        await until(is_trusted, group)
        await until(is_settled, group)


async def all_know_of_all(sides: Sides) -> None:
    def is_known(group: GatewayGroup) -> bool:
        return metric(group, "gw_alive_workers_count") == WORKERS

    for group in (sides.many, sides.alone):
        await until(is_known, group)


async def part(sides: Sides, relay_or_island: Relay | RedisIsland) -> tuple[Load, Load]:
    """Use a little of the limit, cut one side off, and let both take all they can."""
    async with Load(sides.many, per_s=PER_S) as many, Load(sides.alone, per_s=PER_S) as alone:
        await asyncio.sleep(1.0)
        cut(relay_or_island)
        await asyncio.sleep(AWAY_S)
    mend(relay_or_island)
    await both_settled(sides)
    return many, alone


def cut(way: Relay | RedisIsland) -> None:
    if isinstance(way, Relay):
        way.is_cut = True
        way.drop()
    else:
        way.cut(2)


def mend(way: Relay | RedisIsland) -> None:
    if isinstance(way, Relay):
        way.is_cut = False
        way.drop()
    else:
        way.mend(2)


def judge(loads: tuple[Load, Load], provider: SimulatedProvider, day: tuple[int, int, int]) -> None:
    """The side cut off took its share at most, both together 1.2 limits; the books agree."""
    many, alone = loads
    (key,) = provider.stats()["keys"].values()
    good = many.statuses()[200] + alone.statuses()[200]
    assert set(many.statuses() | alone.statuses()) <= {200, 429}
    assert 0 < alone.degraded() <= SHARE
    assert RPM <= key["peak_requests_60s"] <= 1.2 * RPM
    assert key["accepted"] == good
    assert day == (good, key["tokens"], 0)


async def test_worker_that_is_cut_off_alone_takes_at_most_its_share() -> None:
    with (
        RedisServer(binary()) as server,
        Relay(server.path) as relay,
        simulated() as provider,
        GatewayGroup(configuration(provider), workers=2, redis_url=server.url) as many,
        GatewayGroup(configuration(provider), workers=1, redis_url=relay.url) as alone,
    ):
        sides = Sides(many, alone)
        await all_know_of_all(sides)

        loads = await part(sides, relay)

        judge(loads, provider, counted(server))


async def test_partition_admits_at_most_a_fifth_above_the_limit() -> None:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with (
        RedisIsland(binary()) as island,
        simulated() as provider,
        GatewayGroup(configuration(provider), workers=2, redis_url=island.url(1)) as many,
        GatewayGroup(configuration(provider), workers=1, redis_url=island.url(2)) as alone,
    ):
        sides = Sides(many, alone)
        await all_know_of_all(sides)

        loads = await part(sides, island)

        judge(loads, provider, numbers_of(island.command))
