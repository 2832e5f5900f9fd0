"""Three workers under load, one of them killed: usage is what the provider's own books say."""

import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
import pytest

from tests.fakes.admin import ENVIRON, call
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until

pytestmark = [pytest.mark.soak, pytest.mark.timeout(120)]

CLIENTS: Final = 12
LOAD_S: Final = 6.0
EQUAL: Final = ("prompt_tokens", "completion_tokens")


@pytest.fixture
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider({"any_key": True, "any_model": True}) as running:
        yield running


@pytest.fixture
def group(provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    upstream = {"dialect": "openai", "base_url": provider.base_url}
    config = {
        "providers": {"a": upstream, "b": upstream},
        "keys": [{"id": f"{name}1", "provider": name, "secret": f"s{name}"} for name in "ab"],
        "models": [{"provider": name, "model": "m"} for name in "ab"],
        "combos": [
            {"id": "auto", "family": "classic", "strategy": "round-robin", "members": "all"}
        ],
    }
    with GatewayGroup(config, workers=3, environ=ENVIRON) as running:
        yield running


def body_of(name: str, dice: random.Random) -> dict[str, Any]:
    """A request that fails first, now and then."""
    directive: dict[str, Any] = {"tokens": dice.randint(1, 30)}
    if dice.random() < 0.15:
        code = dice.choice([500, 400])
        directive |= {"id": name, "fault": {"kind": "status", "code": code}, "times": 1}
    content = f"say it [[sim {json.dumps(directive)}]]"
    return {
        "model": "auto",
        "stream": dice.random() < 0.5,
        "messages": [{"role": "user", "content": content}],
    }


async def load(group: GatewayGroup) -> None:
    """Send requests for a while; whoever loses a connection goes on."""
    end_s = time.monotonic() + LOAD_S

    async def send(http: aiohttp.ClientSession, number: int) -> None:
        dice, count = random.Random(number), 0
        while time.monotonic() < end_s:
            count += 1
            body = body_of(f"{number}-{count}", dice)
            try:
                async with http.post(f"{group.base_url}/v1/chat/completions", json=body) as answer:
                    await answer.read()
            except aiohttp.ClientError:
                continue

    async with aiohttp.ClientSession() as http:
        await asyncio.gather(*(send(http, number) for number in range(CLIENTS)))


def used(group: GatewayGroup) -> dict[str, Any]:
    total: dict[str, Any] = call(group.admin_url, "GET", "/api/usage").body["total"]
    return total


def at_rest(group: GatewayGroup) -> bool:
    """Whether no window of any key has a request in flight."""
    rows = call(group.admin_url, "GET", "/api/limits").body["items"]
    return not any(window["concurrency"]["used"] for row in rows for window in row["windows"])


async def test_usage_of_three_workers_is_exact(
    group: GatewayGroup, provider: SimulatedProvider
) -> None:
    await load(group)
    until(lambda: at_rest(group))

    total, books = used(group), provider.stats()["totals"]
    assert total["requests"] == books["accepted"] > CLIENTS
    assert total["errors"] == books["failed"] > 0
    assert [total[name] for name in EQUAL] == [books[name] for name in EQUAL]


async def test_a_killed_worker_loses_what_it_had_not_settled_and_nothing_else(
    group: GatewayGroup, provider: SimulatedProvider
) -> None:
    loading = asyncio.create_task(load(group))
    await asyncio.sleep(LOAD_S / 2)
    os.kill(group.worker_pids()[1], signal.SIGKILL)
    await loading
    until(lambda: at_rest(group), 20.0)

    total, books = used(group), provider.stats()["totals"]
    rows = call(group.admin_url, "GET", "/api/limits").body["items"]
    admitted = sum(window["rpd"]["used"] for row in rows for window in row["windows"])
    assert 0 <= admitted - total["requests"] <= CLIENTS
    assert abs(books["accepted"] - total["requests"]) <= CLIENTS
