"""Turns of a fleet: whichever worker is asked, its members lead one after the other."""

import asyncio
from typing import Any, Final

import aiohttp
import pytest

from tests.cluster.fleet import Fleet, running_fleet
from tests.cluster.pools import chat
from tests.fakes.group import SimulatedProvider

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

MODELS: Final = ("m0", "m1", "m2", "m3", "m4", "m5", "m6")


def config(provider: SimulatedProvider) -> dict[str, Any]:
    chain = {"family": "classic", "strategy": "round-robin"}
    return {
        "providers": {"a": {"dialect": "openai", "base_url": provider.base_url}},
        "keys": [{"id": "a1", "provider": "a", "secret": "upstream-secret"}],
        "models": [{"provider": "a", "model": model} for model in MODELS],
        "combos": [{"id": "auto", **chain}, {"id": "alone", **chain, "members": ["a/m0"]}],
    }


async def led(session: aiohttp.ClientSession, base_url: str, model: str = "auto") -> str:
    url = f"{base_url}/v1/chat/completions"
    async with session.post(url, json=chat(model=model)) as answer:
        assert answer.status == 200, await answer.text()
        return answer.headers["X-Routed-Via"]


async def ask(fleet: Fleet) -> tuple[list[str], list[str], list[str]]:
    bases = [group.base_url for group in fleet.groups]
    async with aiohttp.ClientSession() as session:
        # In turn first: the order itself is the fleet's, from the second member on.
        in_turn = [await led(session, bases[at % 3]) for at in range(len(MODELS))]
        at_once = await asyncio.gather(
            *(led(session, bases[at % 3]) for at in range(3 * len(MODELS)))
        )
        alone = [await led(session, base, "alone") for base in bases]
    return in_turn, list(at_once), alone


def test_requests_to_three_workers_are_one_cycle_of_all_members(
    provider: SimulatedProvider,
) -> None:
    with running_fleet(config(provider)) as fleet:
        in_turn, at_once, alone = asyncio.run(ask(fleet))
        cursors = fleet.redis.command("KEYS", "gw1:rr:*")

    assert in_turn == [f"a/{model}" for model in (*MODELS[1:], MODELS[0])]
    assert sorted(at_once) == sorted(f"a/{model}" for model in MODELS for _ in range(3))
    assert alone == ["a/m0"] * 3
    assert cursors.count(b"gw1:rr:") == 1
