"""Troubles of Redis beside its absence: lost again and again, or never there, and who refuses.

Those that last: `test_long_troubles.py`.
"""

import asyncio
from collections import Counter
from functools import partial
from typing import Final

import pytest

from cluster_gw.telemetry.seldom import MOST
from tests.cluster.lost_load import (
    Load,
    binary,
    counted,
    events,
    is_settled,
    is_trusted,
    metric,
    simulated,
    until,
)
from tests.cluster.pools import one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_server import RedisServer
from tests.fakes.relay import Relay

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

PER_S: Final = 100
WORKERS: Final = 3
RPM: Final = 6000
TIGHT_RPM: Final = 300
DURABLE: Final = ("--appendonly", "yes", "--appendfsync", "always")
RECONNECTS: Final = "gw_redis_reconnects_total"


def group_of(
    provider: SimulatedProvider, url: str, when_lost: str = "share", *, has_redis: bool = True
) -> GatewayGroup:
    config = one_model(provider.base_url, rpm=RPM)
    config["redis"] = {"when_lost": when_lost}
    return GatewayGroup(config, workers=WORKERS, redis_url=url, has_redis=has_redis)


def has_reconnected(times: int, group: GatewayGroup) -> bool:
    return metric(group, RECONNECTS) >= times


async def everything_told(group: GatewayGroup) -> None:
    await until(is_trusted, group)
    await until(is_settled, group)


async def test_server_lost_again_while_it_is_told_knows_everything_once() -> None:
    with (
        RedisServer(binary(), *DURABLE) as server,
        simulated(rpm=RPM) as provider,
        group_of(provider, server.url) as group,
    ):
        async with Load(group, per_s=PER_S) as load:
            for up_s in (0.0, 0.05, 0.12, 0.2, 0.3, 0.45, 0.6, 1.1):
                await asyncio.to_thread(server.kill)
                await asyncio.sleep(0.6)
                await asyncio.to_thread(server.start)
                await asyncio.sleep(up_s)
            await until(is_trusted, group)
            await asyncio.sleep(1.0)
        await everything_told(group)

        totals, good = provider.stats()["totals"], load.statuses()[200]
        assert load.statuses() == {200: good}
        assert counted(server) == (good, totals["tokens"], 0)
        assert totals["accepted"] == good
        assert metric(group, "gw_settlements_lost_total") == 0


async def test_connection_that_flaps_is_logged_a_few_times_by_each_worker() -> None:
    with (
        RedisServer(binary()) as server,
        Relay(server.path) as relay,
        simulated(rpm=RPM) as provider,
        group_of(provider, relay.url) as group,
    ):
        for lost in range(1, 3 * MOST):
            relay.drop()
            await until(partial(has_reconnected, WORKERS * lost), group)
        assert group.stop() == 0

        for name in ("redis.lost", "redis.returned"):
            by_worker = Counter(line["worker"] for line in events(group, name))
            assert len(by_worker) == WORKERS
            assert set(by_worker.values()) == {MOST}


async def test_closed_refuses_at_once_and_sends_nothing() -> None:
    with (
        RedisServer(binary()) as server,
        simulated(rpm=RPM) as provider,
        group_of(provider, server.url, "closed") as group,
    ):
        async with Load(group, per_s=PER_S) as load:
            await asyncio.sleep(1.0)
            accepted_s = load.now_s()
            server.kill()
            await asyncio.sleep(1.0)
            accepted = provider.stats()["totals"]["accepted"]
            await asyncio.sleep(1.0)
            assert provider.stats()["totals"]["accepted"] == accepted

        assert load.statuses(accepted_s + 0.5) == {503: load.statuses(accepted_s + 0.5)[503]}
        assert set(load.statuses()) == {200, 503}
        assert load.longest_s(accepted_s + 0.5) < 0.2
        assert metric(group, "gw_alone_grants_total") == 0


@pytest.mark.parametrize(("when_lost", "status"), [("share", 503), ("closed", 503), ("open", 200)])
async def test_worker_that_never_reached_redis_lets_in_only_what_is_open(
    when_lost: str, status: int
) -> None:
    server = RedisServer(binary())
    with (
        simulated(rpm=RPM) as provider,
        group_of(provider, server.url, when_lost, has_redis=False) as group,
    ):
        async with Load(group, per_s=20) as load:
            await asyncio.sleep(2.0)

        assert load.statuses(0.6) == {status: load.statuses(0.6)[status]}
        assert load.statuses(0.6)[status] > 10


@pytest.mark.parametrize("way", ["killed", pytest.param("frozen", marks=pytest.mark.soak)])
async def test_limit_that_is_asked_for_many_times_over_holds_across_the_loss(way: str) -> None:
    lose, regain = {
        "killed": (RedisServer.kill, RedisServer.start),
        "frozen": (RedisServer.freeze, RedisServer.thaw),
    }[way]
    with (
        RedisServer(binary(), *DURABLE) as server,
        simulated(rpm=TIGHT_RPM) as provider,
        GatewayGroup(
            one_model(provider.base_url, rpm=TIGHT_RPM), workers=WORKERS, redis_url=server.url
        ) as group,
    ):
        async with Load(group, per_s=PER_S) as load:
            await asyncio.sleep(1.5)
            await asyncio.to_thread(lose, server)
            await asyncio.sleep(4.0)
            await asyncio.to_thread(regain, server)
            await until(is_trusted, group)
            await asyncio.sleep(3.0)
        await everything_told(group)

        totals, good = provider.stats()["totals"], load.statuses()[200]
        assert set(load.statuses()) == {200, 429}
        assert load.degraded() > 0
        assert sum(totals["violations"].values()) == 0
        assert good == totals["accepted"] == counted(server)[0] == TIGHT_RPM
