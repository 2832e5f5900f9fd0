"""A provider that is down is tried by one request of the whole fleet at a time."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.cluster.fleet import Fleet, running_fleet
from tests.cluster.load import Outcomes, spread
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

COOLDOWN_S: Final = 1.0
LOAD_S: Final = 5.0
FAILURES: Final = 3  # of different targets; each is told, the last one opens
MODELS: Final = tuple(f"m{number}" for number in range(5))
DOWN: Final = '[[sim {"id": "down", "fault": {"kind": "status", "code": 503}, "times": null}]]'


@pytest.fixture(scope="module")
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider({"any_key": True, "any_model": True, "latency_ms": 10}) as running:
        yield running


@pytest.fixture(scope="module")
def fleet(provider: SimulatedProvider) -> Iterator[Fleet]:
    config = {
        **one_model(provider.base_url),
        "models": [{"provider": "a", "model": model} for model in MODELS],
        "routing": {
            # Neither the breakers of single targets nor benches have a part in this.
            "breaker": {"threshold": 100_000, "cooldown_ms": round(1000 * COOLDOWN_S)},
            "bench": {"failures": 100},
        },
    }
    with running_fleet(config) as running:
        yield running


async def calls(provider: SimulatedProvider) -> int:
    stats = await asyncio.to_thread(provider.stats)
    known: Any = stats["requests"].get("down", {"calls": 0})
    number: int = known["calls"]
    return number


async def ask(group: GatewayGroup, text: str) -> Outcomes:
    return await spread(f"{group.base_url}/v1/chat/completions", chat(text), count=1, over_s=0.0)


def told(fleet: Fleet, times: int) -> None:
    """Wait until every worker has heard so many words about the provider."""
    fleet.wait_for_each(lambda known: known.get('gw_events_total{kind="provider"}', 0) >= times)


async def test_provider_that_is_down_is_called_once_per_half_open_window(
    fleet: Fleet, provider: SimulatedProvider
) -> None:
    await ask(fleet.groups[0], DOWN)
    await asyncio.to_thread(told, fleet, FAILURES)
    before, started_s = await calls(provider), time.monotonic()

    outcomes = await fleet.spread(chat(DOWN), each=100, over_s=LOAD_S)

    windows = (time.monotonic() - started_s) / COOLDOWN_S + 1
    tried = await calls(provider) - before
    assert FAILURES <= before <= len(MODELS)  # while the last of them is told the next is called
    assert LOAD_S / (COOLDOWN_S + 1.0) <= tried <= windows
    assert outcomes.statuses[429] + outcomes.statuses[502] == 300


def test_provider_that_is_up_again_serves_everybody(fleet: Fleet) -> None:
    for group in fleet.groups:  # the first of them has the trial, the others hear how it ended
        until_served(group)

    outcomes = asyncio.run(fleet.spread(chat("hello"), each=20, over_s=1.0))

    assert outcomes.statuses == {200: 60}


def until_served(group: GatewayGroup) -> None:
    until(lambda: asyncio.run(ask(group, "hello")).statuses == {200: 1})
