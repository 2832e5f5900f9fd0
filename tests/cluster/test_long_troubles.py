"""Troubles with Redis, for a minute too, that are neither its end nor its refusal to write.

Nobody fails while shares last, no limit is exceeded, and afterwards Redis knows of everything once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, NamedTuple

import pytest

from tests.cluster.lost_load import (
    Load,
    binary,
    cases,
    counted,
    is_settled,
    is_trusted,
    simulated,
    until,
)
from tests.cluster.pools import one_model
from tests.fakes.group import GatewayGroup
from tests.fakes.redis_server import RedisServer
from tests.fakes.relay import Relay

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

PER_S: Final = 100
WORKERS: Final = 3
RPM: Final = 24_000  # half of it, by three: more for each than the load of all in a minute
ALLOWED_MS: Final = 25.0
DELAY_MS: Final = 200.0
FLUSH_S: Final = 0.5


class Way(NamedTuple):
    """To one server: at once, and over a line that can be made slow."""

    server: RedisServer
    relay: Relay


class Trouble(NamedTuple):
    """One kind of trouble.

    Attributes:
        last: lets it begin, and ends it after so many seconds.
        is_alone: workers decide by themselves meanwhile.
        forgets: what the server knew before is gone.
        p99_ms: least and most that gateway and Redis may add to all but a hundredth of the
            requests, after the first second.
    """

    last: Callable[[Way, float], Awaitable[None]]
    is_alone: bool = True
    forgets: bool = False
    p99_ms: tuple[float, float] = (0.0, ALLOWED_MS)


async def pause(way: Way, for_s: float) -> None:
    way.server.command("CLIENT", "PAUSE", str(round(for_s * 1000)), "ALL")
    await asyncio.sleep(for_s)


async def come_back_empty(way: Way, for_s: float) -> None:
    await asyncio.to_thread(way.server.kill)
    await asyncio.sleep(for_s)
    await asyncio.to_thread(way.server.start)


async def forget_scripts(way: Way, for_s: float) -> None:
    for _ in range(round(for_s / FLUSH_S)):
        way.server.command("SCRIPT", "FLUSH")
        await asyncio.sleep(FLUSH_S)


async def read_slowly(way: Way, for_s: float) -> None:
    """Hardly any reply gets through, and more and more wait for it."""
    way.relay.bytes_per_s = 200.0
    await asyncio.sleep(for_s)
    way.relay.bytes_per_s = None


async def delay(way: Way, for_s: float) -> None:
    way.relay.delay_s = DELAY_MS / 2000
    await asyncio.sleep(for_s)
    way.relay.delay_s = 0.0


TROUBLES: Final = {
    "paused": Trouble(pause),
    "empty": Trouble(come_back_empty, forgets=True),
    "scripts": Trouble(forget_scripts, is_alone=False),
    "slow": Trouble(read_slowly),
    # One round trip for each request, on a line that is carried by this process.
    "delayed": Trouble(delay, is_alone=False, p99_ms=(DELAY_MS, 1.5 * DELAY_MS)),
}
"""By name; a server that is killed, frozen, read-only or full: `test_without_redis.py`."""


@pytest.fixture
def way() -> Iterator[Way]:
    with RedisServer(binary()) as server, Relay(server.path) as relay:
        yield Way(server, relay)


@pytest.mark.parametrize(("name", "for_s"), cases(TROUBLES, quick=("paused", "empty")))
async def test_nobody_fails_and_redis_is_told_once(way: Way, name: str, for_s: float) -> None:
    trouble = TROUBLES[name]
    url = way.relay.url if trouble.last in {read_slowly, delay} else way.server.url
    with (
        simulated(rpm=RPM) as provider,
        GatewayGroup(
            one_model(provider.base_url, rpm=RPM), workers=WORKERS, redis_url=url
        ) as group,
    ):
        async with Load(group, per_s=PER_S) as before:
            await asyncio.sleep(1.0)
        await until(is_settled, group)
        known = provider.stats()["totals"]
        assert counted(way.server) == (known["accepted"], known["tokens"], 0)

        async with Load(group, per_s=PER_S) as load:
            await trouble.last(way, for_s)
            await until(is_trusted, group)
            await asyncio.sleep(2.0)
        await until(is_settled, group)
        totals = provider.stats()["totals"]
        told = counted(way.server)

    good = load.statuses()[200]
    assert (before.statuses(), load.statuses()) == ({200: known["accepted"]}, {200: good})
    assert sum(totals["violations"].values()) == 0
    assert totals["accepted"] == known["accepted"] + good
    # An empty server is told of the seconds before its end as well, as far as they are remembered.
    least = good if trouble.forgets else totals["accepted"]
    assert least <= told[0] <= totals["accepted"]
    assert told == (told[0], told[0] * totals["tokens"] // totals["accepted"], 0)
    least_ms, most_ms = trouble.p99_ms
    assert least_ms <= load.p99_added_ms(1.0, for_s) <= most_ms
    assert load.degraded() >= 0.6 * PER_S * (for_s - 1.0) if trouble.is_alone else True
    assert trouble.is_alone or load.degraded() == 0
