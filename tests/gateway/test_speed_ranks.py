"""Measured speed is written into Redis once for all workers, and outlives what it was made of."""

from typing import Any

import aiohttp

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway, provider
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_relays import handle
from tests.gateway.test_snapshot import build

HOME, OWN = "a/one", "a/own"
SLOW, FAST = {"tokens": 1, "ttft_ms": 25}, {"tokens": 400, "tokens_per_s": 1e6}


def with_relay(simulator: RunningSimulator) -> dict[str, Any]:
    """Two models at two addresses, which are the same simulator by two names."""
    relay = simulator.base_url.replace("127.0.0.1", "localhost")
    return {
        "providers": {"a": provider(simulator.base_url)},
        "keys": [
            {"id": "home", "provider": "a", "secret": "secret-of-home"},
            {"id": "away", "provider": "a", "secret": "secret-of-away", "base_url": relay},
        ],
        "models": [
            {"provider": "a", "model": "one"},
            {"provider": "a", "model": "own", "speed_rank": 2},
        ],
    }


async def look(gateway: Gateway) -> None:
    """Do by hand what the elected worker does in its time."""
    sharing = gateway.engine._sharing
    await gateway.engine.settle()
    for job in (sharing._ranker.look, sharing._follow):
        sharing._builder._due_s = 0.0
        await build(gateway)
        await job()


async def stored(gateway: Gateway) -> dict[str, int]:
    name = f"{gateway.settings.redis.prefix}:{{snap}}:speed"
    texts = [bytes(text).decode() for text in await gateway.engine.redis.call("HGETALL", name)]
    return dict(zip(texts[::2], map(int, texts[1::2]), strict=True))


async def chain(gateway: Gateway) -> dict[str, tuple[int | None, int | None]]:
    async with gateway.admin() as admin:
        items = (await admin.get("/api/fallback")).json()["items"]
    return {one["route"]: (one["speed_rank"], one["speed_rank_measured"]) for one in items}


async def test_what_one_worker_measured_sorts_chains_of_another_though_statistics_are_lost(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    first = await start(**with_relay(simulator))
    redis = first.engine.redis
    away = f"{HOME}@{handle(simulator).replace('127-0-0-1', 'localhost')}"
    for name, pace in ((f"{HOME}@{handle(simulator)}", SLOW), (away, FAST), (OWN, FAST)):
        for number in range(21):
            text = steer(id=f"{name}{number}", **pace)
            await post(http, first.base_url, chat(text, model=name))
    await look(first)
    written = await stored(first)
    slow = written["a%2Fone"]

    for record in first.current.view.snapshot.statistics:
        await redis.call("DEL", record)
    second = await start(**with_relay(simulator), prefix=first.settings.redis.prefix)
    await look(second)
    async with second.admin() as admin:
        ordered = (await admin.post("/api/fallback/sort/speed")).json()["items"]
        question = {"request": chat()}
        explained = (await admin.post("/api/explain", json=question)).json()["ranking"]
        model = (await admin.get(f"/api/models/{HOME}")).json()

    assert slow > 2
    assert set(written) == {"a%2Fone", away.replace("/", "%2F").replace("@", "%40"), "_written_at"}
    assert await stored(second) == written  # twice, or without statistics, changes nothing
    assert not second.current.view.snapshot.statistics
    shown = {route: ranks for route, ranks in (await chain(second)).items() if "own" not in route}
    assert shown == {HOME: (slow, slow), away: (1, 1)}
    assert (await chain(second))[OWN] == (2, None)
    assert [one["route"] for one in ordered][0::3] == [away, HOME]
    assert {one["route"]: one["speed_rank"] for one in explained}[HOME] == slow
    assert (model["speed_rank"], model["speed_rank_measured"]) == (None, 1)
