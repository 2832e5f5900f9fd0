"""Limits of accounts, caps of keys and what estimates learn, over three worker processes."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
import msgspec
import pytest
from redis import Redis

from tests.cluster.load import spread
from tests.cluster.pools import chat
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until
from tests.lua.calls import texts

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

ACCOUNT_RPM: Final = 40
CAP_RPM: Final = 25
WEIGHTS: Final = {"light": 1.0, "heavy": 2.5}
LEARNED_WITHIN_S: Final = 8.0  # two looks


class Served(msgspec.Struct):
    """What clients were answered: statuses, codes of refusals, tokens by model."""

    statuses: list[int] = []
    codes: set[str] = set()
    tokens: dict[str, int] = {}


@pytest.fixture(scope="module")
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider({"any_key": True, "any_model": True, "latency_ms": 30}) as running:
        yield running


@pytest.fixture(scope="module")
def group(server: RedisServer, provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    with GatewayGroup(configuration(provider), workers=3, redis_url=server.url) as running:
        running.wait_for_all_workers()
        yield running


@pytest.fixture
def link(server: RedisServer) -> Redis:
    return Redis.from_url(server.url, protocol=2, decode_responses=True)


def configuration(provider: SimulatedProvider) -> dict[str, Any]:
    """A provider whose keys share an account, one whose key is capped, one without limits."""
    host = {"dialect": "openai", "base_url": provider.base_url}
    return {
        "providers": {
            "pooled": {**host, "accounts": {"team": {"limits": {"rpm": ACCOUNT_RPM}}}},
            "capped": {**host, "caps": {"rpm": CAP_RPM, "tpd": "1M", "monthly_tokens": "2M"}},
            "free": host,
        },
        "keys": [
            *(
                {"id": f"k{n}", "provider": "pooled", "secret": f"s{n}", "account": "team"}
                for n in range(3)
            ),
            {"id": "c", "provider": "capped", "secret": "sc"},
            {"id": "f", "provider": "free", "secret": "sf"},
        ],
        "models": [
            {"provider": "pooled", "model": "m"},
            *(
                {"provider": "capped", "model": model, "token_weight": weight}
                for model, weight in WEIGHTS.items()
            ),
            {"provider": "free", "model": "m"},
        ],
        "combos": [{"id": "auto", "family": "classic", "strategy": "priority", "members": "all"}],
        "default_combo": "auto",
    }


async def ask_all(url: str, models: list[str]) -> Served:
    """Ask for each of the models at the same time, each on a connection of its own."""
    served = Served()
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one(model: str) -> None:
            body = chat(model=f"capped/{model}", max_tokens=20)
            async with session.post(url, json=body) as response:
                answer = await response.json()
            served.statuses.append(response.status)
            if response.status == 200:
                used = answer["usage"]["total_tokens"]
                served.tokens[model] = served.tokens.get(model, 0) + used
            else:
                served.codes |= {item["code"] for item in answer["error"]["skipped"]}

        await asyncio.gather(*(one(model) for model in models))
    return served


def test_three_workers_admit_exactly_what_an_account_may_over_all_its_keys(
    group: GatewayGroup, provider: SimulatedProvider
) -> None:
    url = f"{group.base_url}/v1/chat/completions"
    body = chat(model="pooled/m", max_tokens=20)
    before = set(provider.stats()["keys"])  # of the other tests, which share the provider

    outcomes = asyncio.run(spread(url, body, count=150, over_s=2))

    assert outcomes.statuses == {200: ACCOUNT_RPM, 429: 150 - ACCOUNT_RPM}
    used = set(provider.stats()["keys"]) - before
    assert len(used) == 3, "every key of the account served"


def test_three_workers_keep_the_caps_of_a_key_and_count_the_settled_truth(
    group: GatewayGroup, link: Redis
) -> None:
    url = f"{group.base_url}/v1/chat/completions"

    served = asyncio.run(ask_all(url, [*WEIGHTS] * 50))

    assert sorted(served.statuses) == [200] * CAP_RPM + [429] * (100 - CAP_RPM)
    assert served.codes == {"provider_minute_cap"}
    weighted = sum(tokens * round(WEIGHTS[model] * 1000) for model, tokens in served.tokens.items())
    expected = (CAP_RPM, weighted, sum(served.tokens.values()))
    until(lambda: counted(link) == expected)


def counted(link: Redis) -> tuple[int, int, int]:
    """Requests and weighted tokens of the day, tokens of the month."""
    _, _, requests, weighted, _, _, tokens, _ = texts(link, "gw1:w:{capped.c}:c:_caps")[
        "now"
    ].split()
    return int(requests), int(weighted), int(tokens)


def test_what_three_workers_see_of_a_client_adds_up_to_one_estimate(
    group: GatewayGroup, link: Redis
) -> None:
    url = f"{group.base_url}/v1/chat/completions"
    name = "gw1:e:{anonymous}:free%2Fm"

    outcomes = asyncio.run(spread(url, chat(model="free/m"), count=90, over_s=1))

    assert outcomes.statuses == {200: 90}
    until(lambda: float(texts(link, name).get("requests", 0)) > 89.9, within_s=LEARNED_WITHIN_S)
    known = {field: float(text) for field, text in texts(link, name).items()}
    assert known["out_used"] < known["out_guessed"] / 4
