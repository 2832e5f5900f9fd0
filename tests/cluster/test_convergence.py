"""Six workers leave a provider that has just become bad as soon as one does, and waste no more.

The same as `cluster-gw simulate --convergence` shows, with real workers, Redis and providers.
"""

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from tests.cluster.pools import chat, foreign_url
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_server import RedisServer, needed_redis

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

RATE: Final = 15.0  # requests a second at each group
WARM_S, FALLEN_S, WITHIN_S = 2.0, 8.0, 6.0
RELIABILITY: Final = 0.2  # after the fall
FAILS: Final = (
    '[[sim {"rules": [{"fault": {"kind": "status", "code": 503}, '
    '"match": {"provider": "falls"}, "times": null}]}]]'
)


class Seen(msgspec.Struct, frozen=True):
    """One request: when it began, what answered, and how many calls had failed before."""

    at_s: float
    via: str
    wasted: int

    @property
    def tried_fallen(self) -> bool:
        """Whether the provider that falls was called: it is the first that can fail."""
        return self.wasted > 0 or self.via.startswith("falls/")


@pytest.fixture(scope="module")
def groups() -> Iterator[list[GatewayGroup]]:
    """Six workers, and one alone, each on a Redis of its own."""
    binary = needed_redis()
    with ExitStack() as running:
        found = [
            running.enter_context(
                SimulatedProvider(
                    {"name": name, "any_key": True, "any_model": True, "latency_ms": latency_ms}
                )
            )
            for name, latency_ms in (("falls", 5), ("steady", 60))
        ]
        config: dict[str, Any] = {
            "providers": {
                name: {"dialect": "openai", "base_url": foreign_url(provider)}
                for name, provider in zip(("falls", "steady"), found, strict=True)
            },
            "keys": [
                {"id": f"{name}-1", "provider": name, "secret": "upstream-secret"}
                for name in ("falls", "steady")
            ],
            # While both are well nearly all traffic goes to the one.
            "models": [
                {"provider": "falls", "model": "m"},
                {"provider": "steady", "model": "n", "weight": 0.8},
            ],
            "combos": [{"id": "auto", "members": "all"}],
            # Learned before, so that the fall meets a good name.
            "routing": {"community_prior": {"falls:m": {"successes": 99, "failures": 1}}},
        }
        yield [
            running.enter_context(
                GatewayGroup(
                    config,
                    workers=workers,
                    redis_url=running.enter_context(RedisServer(binary)).url,
                )
            )
            for workers in (6, 1)
        ]


async def load(group: GatewayGroup, seconds: float, reliability: float) -> list[Seen]:
    """Ask evenly; each request takes a connection of its own, so that all workers have some."""
    luck = random.Random(7)
    count = round(seconds * RATE)
    texts = ["hello" if luck.random() < reliability else FAILS for _ in range(count)]
    started_s = time.monotonic()
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one(number: int) -> Seen:
            await asyncio.sleep(number / RATE)
            at_s = time.monotonic() - started_s
            url = f"{group.base_url}/v1/chat/completions"
            async with session.post(url, json=chat(texts[number])) as answer:
                await answer.read()
                assert answer.status == 200
                wasted = int(answer.headers.get("X-Fallback-Attempts", "0"))
                return Seen(at_s, answer.headers["X-Routed-Via"], wasted)

        return await asyncio.gather(*(one(number) for number in range(count)))


def share(seen: list[Seen]) -> float:
    return sum(one.tried_fallen for one in seen) / len(seen)


async def test_six_workers_move_the_traffic_within_six_seconds_and_waste_no_more_than_one(
    groups: list[GatewayGroup],
) -> None:
    before = await asyncio.gather(*(load(group, WARM_S, 1.0) for group in groups))
    after = await asyncio.gather(*(load(group, FALLEN_S, RELIABILITY) for group in groups))

    six, one = after
    late = [seen for seen in six if seen.at_s >= WITHIN_S]
    assert share(before[0]) > 0.9
    assert share(late) <= 0.1 * share(before[0])
    assert sum(seen.wasted for seen in six) <= sum(seen.wasted for seen in one) + 5
