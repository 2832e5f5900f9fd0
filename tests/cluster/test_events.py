"""What one worker finds out, all others act on within a tenth of a second."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
import pytest

from tests.cluster.fleet import Fleet, running_fleet, samples
from tests.cluster.pools import chat, foreign_url
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.starvation import Starvation
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

MODELS: Final = 150
OVER_S: Final = 5.0
LIMITED: Final = '[[sim {"fault": {"kind": "status", "code": 429}, "times": null}]]'


@pytest.fixture
def fleet(provider: SimulatedProvider) -> Iterator[Fleet]:
    config = {
        "providers": {"a": {"dialect": "openai", "base_url": foreign_url(provider)}},
        "keys": [{"id": "a1", "provider": "a", "secret": "upstream-secret"}],
        "models": [{"provider": "a", "model": f"m{n}"} for n in range(MODELS)],
        "combos": [{"id": "auto", "strategy": "priority", "members": "all"}],
        "default_combo": "auto",
    }
    with running_fleet(config) as running:
        yield running


def when_all_is_told(group: GatewayGroup) -> dict[str, float]:
    """The metrics of a group once it has heard of every model."""
    until(lambda: samples(group).get('gw_events_total{kind="health"}', 0) >= MODELS)
    return samples(group)


async def ask(session: aiohttp.ClientSession, group: GatewayGroup, model: int) -> Any:
    body = chat(f"{model} {LIMITED}", model=f"a/m{model}")
    async with session.post(f"{group.base_url}/v1/chat/completions", json=body) as response:
        return response.status, await response.json()


async def rest_all(session: aiohttp.ClientSession, fleet: Fleet) -> None:
    """Meet a rate limit of each model, one after the other, at one of the workers."""

    async def one(model: int) -> None:
        await asyncio.sleep(model * OVER_S / MODELS)
        status, _ = await ask(session, fleet.groups[model % 3], model)
        assert status == 429

    await asyncio.gather(*(one(model) for model in range(MODELS)))


async def test_a_rest_reaches_every_worker_within_a_tenth_of_a_second(
    fleet: Fleet, provider: SimulatedProvider
) -> None:
    async with aiohttp.ClientSession() as session, Starvation() as starvation:
        await rest_all(session, fleet)
        starved = starvation.share()
        for group in fleet.groups:
            told = when_all_is_told(group)
            in_time = told['gw_event_seconds_bucket{le="0.1"}'] / told["gw_event_seconds_count"]
            # On a machine that does other things a worker waits for its turn as this test does.
            assert in_time >= 0.99 - starved, told

        answers = [await ask(session, fleet.groups[(n + 1) % 3], n) for n in range(MODELS)]

    codes = {(status, body["error"]["skipped"][0]["code"]) for status, body in answers}
    assert codes == {(429, "cooldown")}
    (key,) = provider.stats()["keys"].values()
    assert key["requests_60s"] == MODELS
