"""A dead key costs the whole fleet one call per half-open window; the provider's counter judges."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.cluster.load import Outcomes, spread
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

THRESHOLD: Final = 3
COOLDOWN_S: Final = 1.0
LOAD_S: Final = 6.0
DEAD: Final = '[[sim {"id": "dead", "fault": {"kind": "status", "code": 503}, "times": null}]]'
HANGING: Final = (
    '[[sim {"id": "hanging", "times": null, '
    '"fault": {"kind": "hang_before_headers", "max_s": 0.5}}]]'
)


@pytest.fixture(scope="module")
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider({"any_key": True, "any_model": True, "latency_ms": 10}) as running:
        yield running


@pytest.fixture(scope="module")
def group(provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    breaker = {"threshold": THRESHOLD, "cooldown_ms": round(1000 * COOLDOWN_S)}
    config = {**one_model(provider.base_url), "routing": {"breaker": breaker}}
    with GatewayGroup(config, workers=3) as running:
        yield running


async def calls(provider: SimulatedProvider, name: str) -> int:
    stats = await asyncio.to_thread(provider.stats)
    known: Any = stats["requests"].get(name, {"calls": 0})
    number: int = known["calls"]
    return number


async def load(group: GatewayGroup, text: str, count: int, over_s: float) -> Outcomes:
    url = f"{group.base_url}/v1/chat/completions"
    return await spread(url, chat(text), count=count, over_s=over_s)


@pytest.mark.parametrize(("name", "text"), [("dead", DEAD), ("hanging", HANGING)])
async def test_dead_key_is_called_at_most_once_per_half_open_window(
    group: GatewayGroup, provider: SimulatedProvider, name: str, text: str
) -> None:
    for _ in range(THRESHOLD):  # one after the other, each on a connection of its own
        await load(group, text, 1, 0.0)
    before, started_s = await calls(provider, name), time.monotonic()

    outcomes = await load(group, text, 300, LOAD_S)

    windows = (time.monotonic() - started_s) / COOLDOWN_S + 1
    tried = await calls(provider, name) - before
    assert before <= THRESHOLD
    assert LOAD_S / (COOLDOWN_S + 1.0) <= tried <= windows
    assert outcomes.statuses[429] + outcomes.statuses[502] == 300
    assert outcomes.statuses[502] == tried


async def test_key_that_is_well_again_serves_everybody(
    group: GatewayGroup, provider: SimulatedProvider
) -> None:
    await asyncio.sleep(COOLDOWN_S + 0.1)
    await load(group, "hello", 1, 0.0)
    await asyncio.sleep(COOLDOWN_S)  # a worker may remember that it was refused

    outcomes = await load(group, "hello", 60, 1.0)

    assert outcomes.statuses == {200: 60}
