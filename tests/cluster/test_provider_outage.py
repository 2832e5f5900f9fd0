"""A provider that is down is tried by one request of the whole fleet at a time."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.cluster.load import Outcomes, spread
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

COOLDOWN_S: Final = 1.0
LOAD_S: Final = 5.0
MODELS: Final = tuple(f"m{number}" for number in range(5))
DOWN: Final = '[[sim {"id": "down", "fault": {"kind": "status", "code": 503}, "times": null}]]'


@pytest.fixture(scope="module")
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider({"any_key": True, "any_model": True, "latency_ms": 10}) as running:
        yield running


@pytest.fixture(scope="module")
def group(provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    config = {
        **one_model(provider.base_url),
        "models": [{"provider": "a", "model": model} for model in MODELS],
        "routing": {
            # Neither the breakers of single targets nor benches have a part in this.
            "breaker": {"threshold": 100_000, "cooldown_ms": round(1000 * COOLDOWN_S)},
            "bench": {"failures": 100},
        },
    }
    with GatewayGroup(config, workers=3) as running:
        yield running


async def calls(provider: SimulatedProvider) -> int:
    stats = await asyncio.to_thread(provider.stats)
    known: Any = stats["requests"].get("down", {"calls": 0})
    number: int = known["calls"]
    return number


async def load(group: GatewayGroup, text: str, count: int, over_s: float) -> Outcomes:
    url = f"{group.base_url}/v1/chat/completions"
    return await spread(url, chat(text), count=count, over_s=over_s)


async def test_provider_that_is_down_is_called_once_per_half_open_window(
    group: GatewayGroup, provider: SimulatedProvider
) -> None:
    await load(group, DOWN, 1, 0.0)
    await asyncio.sleep(0.2)  # all workers are told
    before, started_s = await calls(provider), time.monotonic()

    outcomes = await load(group, DOWN, 300, LOAD_S)

    windows = (time.monotonic() - started_s) / COOLDOWN_S + 1
    tried = await calls(provider) - before
    assert 3 <= before <= len(MODELS)  # what it opened by is told while the next is under way
    assert LOAD_S / (COOLDOWN_S + 1.0) <= tried <= windows
    assert outcomes.statuses[429] + outcomes.statuses[502] == 300


async def test_provider_that_is_up_again_serves_everybody(
    group: GatewayGroup, provider: SimulatedProvider
) -> None:
    await asyncio.sleep(COOLDOWN_S + 0.1)
    await load(group, "hello", 1, 0.0)
    await asyncio.sleep(0.2)

    outcomes = await load(group, "hello", 60, 1.0)

    assert outcomes.statuses == {200: 60}
