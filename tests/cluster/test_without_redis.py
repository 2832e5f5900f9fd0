"""Redis goes away under load, in every way; the provider's counter and its own are the judges."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

import pytest

from tests.cluster.lost_load import (
    Load,
    binary,
    cases,
    counted,
    events,
    is_settled,
    is_trusted,
    simulated,
    until,
)
from tests.cluster.pools import one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider, get_json
from tests.fakes.redis_server import RedisServer

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

PER_S: Final = 100
WORKERS: Final = 3
RPM: Final = (
    24_000  # half of what is left, by three: more for each than the load of all in a minute
)
DURABLE: Final = ("--appendonly", "yes", "--appendfsync", "always")
ALLOWED_MS: Final = 25.0


@contextlib.asynccontextmanager
async def loaded(group: GatewayGroup) -> AsyncIterator[Load]:
    """A load that has run for a second, and runs for two more after Redis is trusted again."""
    async with Load(group, per_s=PER_S) as load:
        await asyncio.sleep(1.0)
        yield load
        await until(is_trusted, group)
        await asyncio.sleep(2.0)
    await until(is_settled, group)


def hold(
    load: Load, provider: SimulatedProvider, server: RedisServer, away: tuple[float, float]
) -> None:
    """Nobody failed, nothing was slow or too much, and Redis knows of everything once."""
    totals = provider.stats()["totals"]
    good = load.statuses()[200]
    assert load.statuses() == {200: good}
    assert sum(totals["violations"].values()) == 0
    assert totals["accepted"] == good
    assert counted(server) == (good, totals["tokens"], 0)
    first_s, last_s = away
    assert load.degraded() >= 0.6 * PER_S * (last_s - first_s - 1.0)
    assert load.p99_added_ms(first_s + 1.0, last_s) <= ALLOWED_MS


Break = Callable[[RedisServer], None]


def kill(server: RedisServer) -> None:
    server.kill()


def start(server: RedisServer) -> None:
    server.start()


def make_replica(server: RedisServer) -> None:
    server.command("REPLICAOF", "127.0.0.1", "1")


def make_master(server: RedisServer) -> None:
    server.command("REPLICAOF", "NO", "ONE")


def fill(server: RedisServer) -> None:
    server.command("CONFIG", "SET", "maxmemory", "1")


def widen(server: RedisServer) -> None:
    server.command("CONFIG", "SET", "maxmemory", "0")


WAYS: Final = {
    "killed": (kill, start),
    "frozen": (RedisServer.freeze, RedisServer.thaw),
    "readonly": (make_replica, make_master),
    "full": (fill, widen),
}


@pytest.mark.parametrize(("way", "for_s"), cases(WAYS, quick=("killed", "readonly")))
async def test_shares_serve_everybody_and_are_told_to_redis_once(way: str, for_s: float) -> None:
    break_, mend = WAYS[way]
    with (
        RedisServer(binary(), *DURABLE) as server,
        simulated(rpm=RPM) as provider,
        GatewayGroup(
            one_model(provider.base_url, rpm=RPM), workers=WORKERS, redis_url=server.url
        ) as group,
    ):
        async with loaded(group) as load:
            first_s = load.now_s()
            await asyncio.to_thread(break_, server)
            await asyncio.sleep(for_s)
            is_ready = get_json(f"{group.admin_url}/readyz")["status"]
            last_s = load.now_s()
            await asyncio.to_thread(mend, server)

        hold(load, provider, server, (first_s, last_s))
        assert is_ready == "degraded"
        assert len(events(group, "alone.begun")) == len(events(group, "alone.ended")) == WORKERS
        assert group.stop() == 0
