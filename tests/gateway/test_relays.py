"""One model behind two relays: limits, health and statistics of each stand apart, in real Redis."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from cluster_gw.simulator.config import SimulatorConfig
from cluster_gw.simulator.server import RunningSimulator, serve_simulator
from cluster_gw.units import RouteId
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_health import ask, status
from tests.gateway.test_snapshot import build, detail


@pytest.fixture
async def other() -> AsyncIterator[RunningSimulator]:
    running = await serve_simulator(SimulatorConfig(any_key=True, any_model=True))
    yield running
    await running.close()


def handle(simulator: RunningSimulator) -> str:
    return simulator.base_url.removeprefix("http://").translate(str.maketrans(".:/", "---"))


@pytest.fixture
async def relays(start: Start, simulator: RunningSimulator, other: RunningSimulator) -> Gateway:
    """A model at the provider's address and at a relay, two requests a minute each."""
    return await start(
        providers={"own": {"dialect": "openai", "base_url": simulator.base_url}},
        keys=[
            {"id": "home", "provider": "own", "secret": "secret-of-home"},
            {
                "id": "away",
                "provider": "own",
                "secret": "secret-of-away",
                "base_url": other.base_url,
            },
        ],
        models=[{"provider": "own", "model": "m", "limits": {"rpm": 2}}],
        combos=[{"id": "auto", "family": "classic", "strategy": "priority", "members": ["own/m"]}],
    )


async def via(http: aiohttp.ClientSession, gateway: Gateway, **fields: Any) -> str:
    response, body = await post(http, gateway.base_url, chat(**fields))
    return response.headers.get("X-Routed-Via") or str(json.loads(body)["error"]["code"])


async def test_each_relay_has_the_models_limit_for_itself(
    relays: Gateway, http: aiohttp.ClientSession, other: RunningSimulator
) -> None:
    away = f"own/m@{handle(other)}"

    served = [await via(http, relays) for _ in range(5)]

    assert served == ["own/m", "own/m", away, away, "rate_limit_exceeded"]


async def test_a_relay_is_asked_for_by_its_endpoint_alone(
    relays: Gateway, http: aiohttp.ClientSession, other: RunningSimulator
) -> None:
    names = [f"own:m#{handle(other)}", f"own:m#{other.base_url}", f"own/m@{handle(other)}"]

    served = [await via(http, relays, model=name) for name in names]

    assert served == [f"own/m@{handle(other)}"] * 2 + ["rate_limit_exceeded"]


async def test_failures_of_one_relay_say_nothing_of_the_other(
    relays: Gateway, http: aiohttp.ClientSession, other: RunningSimulator
) -> None:
    failing = steer(id="f", fault=status(500), times=1)
    away = f"own/m@{handle(other)}"

    await post(http, relays.base_url, chat(failing, model=away))
    await relays.engine.settle()
    await build(relays)

    known = relays.current.view.signals.routes
    assert known[RouteId(away)].penalty_points == 1
    assert known[RouteId(away)].statistics.failures == pytest.approx(1, abs=0.01)
    assert known[RouteId("own/m")].penalty_points == 0
    assert known[RouteId("own/m")].statistics.failures == 0


async def test_records_of_a_relay_carry_its_endpoint(
    relays: Gateway, http: aiohttp.ClientSession, other: RunningSimulator
) -> None:
    answer = await detail(http, relays, model=f"own/m@{handle(other)}")

    assert answer["attempts"][0]["model"] == f"m@{handle(other)}"
    plan = [
        target.limits.model
        for by_key in relays.current.serving.runtime.targets.values()
        for target in by_key.values()
    ]
    assert plan == ["m", f"m@{handle(other)}"]


async def test_a_relay_that_is_cut_off_as_a_whole_leaves_the_others_alone(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator, other: RunningSimulator
) -> None:
    away = handle(other)
    gateway = await start(
        providers={"own": {"dialect": "openai", "base_url": simulator.base_url}},
        keys=[
            {"id": "home", "provider": "own", "secret": "s-home"},
            {"id": "away", "provider": "own", "secret": "s-away", "base_url": other.base_url},
        ],
        models=[{"provider": "own", "model": f"m{number}"} for number in range(4)],
        combos=[{"id": "auto"}],
    )

    for number in range(3):
        await ask(http, gateway, f"sick-{number}", status(503), model=f"own/m{number}@{away}")
    refused, body = await ask(http, gateway, "next", model=f"own/m3@{away}")
    await gateway.engine.settle()
    await build(gateway)

    assert (refused, body["error"]["skipped"][0]["code"]) == (429, "provider_open")
    assert list(gateway.current.view.signals.barred) == [
        RouteId(f"own/m{number}@{away}") for number in range(4)
    ]
    response, _ = await post(http, gateway.base_url, chat(model="own/m3"))
    assert response.headers["X-Routed-Via"] == "own/m3"


async def test_after_one_relay_has_failed_the_next_is_tried_before_other_providers(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator, other: RunningSimulator
) -> None:
    gateway = await start(
        providers={
            "own": {"dialect": "openai", "base_url": simulator.base_url},
            "b": {"dialect": "openai", "base_url": simulator.base_url},
        },
        keys=[
            {"id": "home", "provider": "own", "secret": "s-home"},
            {"id": "away", "provider": "own", "secret": "s-away", "base_url": other.base_url},
            {"id": "b1", "provider": "b", "secret": "s-b1"},
        ],
        models=[{"provider": "own", "model": "m"}, {"provider": "b", "model": "two"}],
    )

    # Each of the two simulated providers fails once.
    failing = chat(steer(id="once", fault=status(503), times=1))
    response, _ = await post(http, gateway.base_url, failing)

    tried = [entry.partition(" ")[0] for entry in response.headers["X-Fallback-Trail"].split("; ")]
    assert tried == ["own/m", f"own/m@{handle(other)}"]
    assert response.headers["X-Routed-Via"] == "b/two"


async def test_what_is_held_against_a_relay_is_shown_and_forgotten_as_its_own(
    relays: Gateway, http: aiohttp.ClientSession, other: RunningSimulator
) -> None:
    away = f"own/m@{handle(other)}"
    await ask(http, relays, "limited", status(429, retry_after=300), model=away)

    async with relays.admin() as admin:
        path = "/api/fallback/penalty-inspector"
        rows = (await admin.get(path)).json()["rows"]
        await admin.delete(path)
        after = (await admin.get(path)).json()["rows"]

    assert [(row["route"], [one["key"] for one in row["cooldowns"]]) for row in rows] == [
        (away, ["away"])
    ]
    assert [(row["route"], row["reasons"]) for row in after] == [(away, ["recent_errors"])]
    assert await via(http, relays, model=away) == away
