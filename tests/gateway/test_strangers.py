"""Requests without a valid key are counted by address and refused after a bound; others are not."""

import asyncio
from collections import Counter
from hashlib import sha256
from typing import Any, Final

import aiohttp
import pytest

from cluster_gw.server.inference import Deps
from cluster_gw.server.stranger_guard import StrangerGuard, StrangerPolicy
from cluster_gw.store.strangers import APART
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post

KEY: Final = "sk-good"
CLIENT: Final = {"id": "app", "key_sha256": sha256(KEY.encode()).hexdigest()}
WRONG: Final = {"Authorization": "Bearer sk-wrong"}
GOOD: Final = {"Authorization": f"Bearer {KEY}"}


def closed(**auth: Any) -> dict[str, Any]:
    return {"auth": {"mode": "keys", "strangers_rpm": 3, **auth}, "clients": [CLIENT]}


async def statuses(
    http: aiohttp.ClientSession, base_url: str, count: int, **headers: str
) -> list[int]:
    return [(await post(http, base_url, chat(), **headers))[0].status for _ in range(count)]


async def test_stranger_gets_429_with_the_time_to_wait_after_so_many_401s(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**closed())

    before = await statuses(http, gateway.base_url, 3, **WRONG)
    response, body = await post(http, gateway.base_url, chat(), **WRONG)

    assert (before, response.status) == ([401] * 3, 429)
    assert b'"code":"too_many_invalid_keys"' in body
    assert 1 <= int(response.headers["retry-after"]) <= 60
    assert gateway.engine.deps.guard.take_news() == (1, ["127.0.0.1"])


async def test_good_key_is_served_whatever_its_neighbours_do_and_is_not_counted(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**closed())

    await statuses(http, gateway.base_url, 10, **WRONG)
    served = await statuses(http, gateway.base_url, 5, **GOOD)
    counted = await gateway.engine.redis.call(
        "HGET", f"{gateway.settings.redis.prefix}:{{auth}}:strangers", "127.0.0.1"
    )

    assert served == [200] * 5
    assert counted == b"4"  # what is refused without asking is not counted


async def test_requests_without_a_key_and_listings_count_too(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**closed())

    await statuses(http, gateway.base_url, 2)
    listed = []
    for _ in range(2):
        async with http.get(f"{gateway.base_url}/v1/models") as response:
            listed.append(response.status)

    assert listed == [401, 429]


async def test_address_behind_a_trusted_proxy_is_the_one_it_names(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**closed(trusted_proxies=["127.0.0.0/8"]))

    first = await statuses(http, gateway.base_url, 4, X_Forwarded_For="203.0.113.1", **WRONG)
    second = await statuses(http, gateway.base_url, 1, X_Forwarded_For="203.0.113.2", **WRONG)

    assert (first, second) == ([401] * 3 + [429], [401])


async def test_forged_origin_changes_nothing(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start(**closed())

    answers = [
        (await statuses(http, gateway.base_url, 1, X_Forwarded_For=f"203.0.113.{n}", **WRONG))[0]
        for n in range(4)
    ]

    assert answers == [401] * 3 + [429]


async def test_bound_of_zero_asks_nobody(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start(**closed(strangers_rpm=0))

    assert Counter(await statuses(http, gateway.base_url, 20, **WRONG)) == {401: 20}


@pytest.fixture
async def cut_off(start: Start) -> Deps:
    """A worker whose Redis is gone."""
    gateway = await start(**closed())
    await gateway.engine.redis.close()
    return gateway.engine.deps


async def test_worker_without_redis_counts_alone(
    cut_off: Deps, start: Start, http: aiohttp.ClientSession
) -> None:
    guard, policy = cut_off.guard, StrangerPolicy(rpm=3)
    error = cut_off.current.serving.clients.identify({})
    scope = {"client": ("192.0.2.1", 1), "headers": []}

    answers = [(await guard.judge(error, scope, policy)).status for _ in range(5)]  # type: ignore[arg-type]

    assert answers == [401] * 3 + [429] * 2


async def test_memory_of_a_worker_is_bounded(cut_off: Deps) -> None:
    guard: StrangerGuard = cut_off.guard
    error = cut_off.current.serving.clients.identify({})
    policy = StrangerPolicy(rpm=1)

    for number in range(APART + 50):
        address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        scope = {"client": (address, 1), "headers": []}
        for _ in range(2):
            await guard.judge(error, scope, policy)  # type: ignore[arg-type]

    assert len(guard._alone) == APART + 1
    assert 0 < len(guard._barred) <= APART
    assert len(guard.take_news()[1]) == 5


async def test_address_whose_requests_come_at_once_is_named_once(start: Start) -> None:
    gateway = await start(**closed())
    guard = gateway.engine.deps.guard
    error = gateway.current.serving.clients.identify({})
    scope = {"client": ("192.0.2.1", 1), "headers": []}
    policy = StrangerPolicy(rpm=3)

    answers = await asyncio.gather(*(guard.judge(error, scope, policy) for _ in range(20)))  # type: ignore[arg-type]

    assert Counter(answer.status for answer in answers)[429] >= 17
    assert guard.take_news() == (1, ["192.0.2.1"])
