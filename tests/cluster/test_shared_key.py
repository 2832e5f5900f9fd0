"""A key that others use, too: three workers keep to what its provider has left."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
import pytest

from tests.cluster.fleet import samples
from tests.cluster.load import spread
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

LIMIT: Final = 60
OUTSIDE: Final = 35
OUTSIDE_USE: Final = 'gw_outside_use_total{kind="requests",provider="a"}'
SECRET: Final = "upstream-secret"


@pytest.fixture(scope="module")
def provider() -> Iterator[SimulatedProvider]:
    config = {"keys": {SECRET: {"rpm": LIMIT}}, "any_model": True, "latency_ms": 5}
    with SimulatedProvider(config) as running:
        yield running


@pytest.fixture(scope="module")
def group(provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    with GatewayGroup(one_model(provider.base_url, rpm=LIMIT), workers=3) as running:
        yield running


async def use_outside(provider: SimulatedProvider) -> None:
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {SECRET}"}) as session:
        for _ in range(OUTSIDE):
            async with session.post(
                f"{provider.base_url}/chat/completions", json={"model": "sim-small", **chat()}
            ) as response:
                assert response.status == 200


async def test_workers_together_use_no_more_than_others_left(
    group: GatewayGroup, provider: SimulatedProvider
) -> None:
    url = f"{group.base_url}/v1/chat/completions"
    await use_outside(provider)

    first = await spread(url, chat(), count=1, over_s=0.0)
    # One worker saw it, and told the counters of all.
    await asyncio.to_thread(until, lambda: bool(samples(group).get(OUTSIDE_USE)))
    outcomes = await spread(url, chat(), count=90, over_s=3.0)

    stats: dict[str, Any] = await asyncio.to_thread(provider.stats)
    served = first.statuses[200] + outcomes.statuses[200]
    assert stats["totals"]["violations"]["rpm"] == 0
    assert stats["totals"]["rejected"] == 0
    assert LIMIT - OUTSIDE - 3 <= served <= LIMIT - OUTSIDE
    assert first.statuses[200] + sum(outcomes.statuses.values()) == 91
