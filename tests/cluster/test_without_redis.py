"""Redis goes away under load, in every way; the provider's counter and its own are the judges."""

import asyncio
import contextlib
import json
import re
import urllib.request
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest

from cluster_gw.store.keys import Keys
from tests.cluster.lost_load import Load, until
from tests.cluster.pools import one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider, get_json
from tests.fakes.redis_server import RedisServer, redis_binary

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

PER_S: Final = 100
WORKERS: Final = 3
RPM: Final = 6000  # half of what is left, by three: more for each than the load of all
DURABLE: Final = ("--appendonly", "yes", "--appendfsync", "always")
KEYS: Final = Keys("gw1")
WINDOW: Final = KEYS.model_window(KEYS.slot("a", "a1"), "a1", "sim-small")
SHORT_S: Final = 5.0
LONG_S: Final = 60.0
ALLOWED_MS: Final = 25.0


def binary() -> str:
    found = redis_binary()
    assert found is not None, "redis-server is missing; `make test` installs it"
    return found


def simulated(**limits: int) -> SimulatedProvider:
    """A provider that only counts violations: a refusal of its own would hide ours."""
    keys = {"upstream-secret": {"label": "a1", **limits}}
    return SimulatedProvider({"keys": keys, "any_model": True, "enforce": False})


def counted(server: RedisServer) -> tuple[int, int, int]:
    """Requests and tokens of the day in the window, and what is in flight."""
    now = re.search(rb"\n([\d ]+)\r\n", server.command("HGET", WINDOW, "now"))
    if now is None:
        return 0, 0, 0
    numbers = [int(word) for word in now[1].split()]
    return numbers[7], numbers[8], numbers[9]


def metric(group: GatewayGroup, name: str) -> float:
    """A number of the group, summed over its labels."""
    with urllib.request.urlopen(f"{group.admin_url}/metrics", timeout=5) as page:  # noqa: S310
        lines = page.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if re.match(rf"{name}[ {{]", line))


def is_trusted(group: GatewayGroup) -> bool:
    """Whether no worker is by itself, or has anything to tell."""
    return not metric(group, "gw_alone_workers_count") + metric(group, "gw_journal_entries_count")


def is_settled(group: GatewayGroup) -> bool:
    """Whether everything has been written."""
    return not metric(group, "gw_settlements_pending_count")


def events(group: GatewayGroup, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in group.log().splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == name]


@contextlib.asynccontextmanager
async def loaded(group: GatewayGroup) -> AsyncIterator[Load]:
    """A load that has run for a second, and runs for two more after Redis is trusted again."""
    async with Load(group, per_s=PER_S) as load:
        await asyncio.sleep(1.0)
        yield load
        await until(lambda: is_trusted(group), 15.0)
        await asyncio.sleep(2.0)
    await until(lambda: is_settled(group), 15.0)


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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "for_s",
    [SHORT_S, pytest.param(LONG_S, marks=[pytest.mark.soak, pytest.mark.timeout(240)])],
)
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
