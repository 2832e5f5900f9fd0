"""What one worker sees of a model, all workers rank by: they learn as one."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
import pytest

from tests.cluster.fleet import Fleet, running_fleet
from tests.cluster.pools import chat, foreign_url
from tests.fakes.group import GatewayGroup, SimulatedProvider, get_json
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

FAILS: Final = '[[sim {"fault": {"kind": "status", "code": 500}, "times": null}]]'
SEEN: Final = 20
GOOD, BAD = "a/good", "a/bad"


@pytest.fixture(scope="module")
def fleet(provider: SimulatedProvider) -> Iterator[Fleet]:
    config = {
        "providers": {"a": {"dialect": "openai", "base_url": foreign_url(provider)}},
        "keys": [{"id": "a1", "provider": "a", "secret": "upstream-secret"}],
        "models": [{"provider": "a", "model": "bad"}, {"provider": "a", "model": "good"}],
        "combos": [{"id": "auto", "strategy": "reliable", "members": "all"}],
        # What bars a target has no part in this: it is learned, and nothing else.
        "routing": {
            "breaker": {"threshold": 100_000},
            "bench": {"failures": 100},
            "penalty": {"failure": 0.0},
        },
    }
    with running_fleet(config) as running:
        yield running


async def ask(group: GatewayGroup, **fields: Any) -> Any:
    """The body of an answer with its details."""
    async with (
        aiohttp.ClientSession(headers={"X-Gw-Detail": "1"}) as session,
        session.post(f"{group.base_url}/v1/chat/completions", json=chat(**fields)) as response,
    ):
        return await response.json()


def version(group: GatewayGroup) -> int:
    found: int = get_json(f"{group.admin_url}/readyz")["snapshot"]["version"]
    return found


def wait_for_another(group: GatewayGroup) -> None:
    """Wait until a worker ranks by another snapshot than now."""
    before = version(group)
    until(lambda: version(group) > before, 15)


def knows(answer: Any, route: str, attempts: float) -> bool:
    """Whether a worker ranks by at least so many attempts of a route."""
    (place,) = (one for one in answer["ranking"] if one["route"] == route)
    samples: float = place["factors"][0]["samples"]
    return samples > attempts


async def test_a_worker_that_has_seen_nothing_avoids_what_failed_at_another(fleet: Fleet) -> None:
    first, second, third = fleet.groups
    for _ in range(SEEN):
        await ask(first, text=FAILS, model=BAD)
        await ask(second, model=GOOD)

    for _ in range(3):  # what was seen is told each second, a snapshot takes five
        await asyncio.to_thread(wait_for_another, third)
        probe = await ask(third)
        if all(knows(probe, route, SEEN - 1) for route in (GOOD, BAD)):
            break

    answers = [await ask(third) for _ in range(20)]

    assert all(knows(answer, BAD, SEEN - 1) for answer in answers)
    firsts = [answer["ranking"][0]["route"] for answer in answers]
    assert firsts.count(GOOD) >= 18
