"""One worker builds a snapshot of what its requests left behind, and ranks by it."""

import json
from typing import Any

import aiohttp
import pytest

from cluster_gw.app import build_serving
from cluster_gw.settings import load_bytes
from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.units import KeyId, RouteId
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_health import ONE_KEY, TWO_MODELS, far, status


async def detail(http: aiohttp.ClientSession, gateway: Gateway, **fields: Any) -> Any:
    """The answer to a request with its ranking."""
    _, body = await post(http, gateway.base_url, chat(**fields), X_Gw_Detail="1")
    await gateway.engine.settle()
    return json.loads(body)


async def build(gateway: Gateway) -> None:
    """Do by hand what the jobs of a worker do: build a snapshot, then read it."""
    sharing = gateway.engine._sharing
    await gateway.engine.coordination.membership.beat()
    await sharing._builder.campaign()
    await sharing._builder.look()
    await sharing._follow()


async def test_a_route_that_rests_goes_behind_with_the_version_that_says_so(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(providers=far(simulator), keys=ONE_KEY, models=TWO_MODELS)
    await detail(http, gateway, text=steer(id="x", fault=status(429), times=1), model="a/one")
    before = await detail(http, gateway)

    await build(gateway)
    after = await detail(http, gateway)

    version = gateway.current.view.snapshot.version
    assert before["snapshot"] == {"version": 0, "age_ms": None}
    assert after["snapshot"]["version"] == version
    assert 0 <= after["snapshot"]["age_ms"] < 5000
    assert [place["route"] for place in before["ranking"]] == ["a/one", "a/two"]
    assert [place["route"] for place in after["ranking"]] == ["a/two", "a/one"]
    assert after["ranking"][1]["reasons"][-1].endswith(f"more, snapshot {version}")
    assert after["skipped"] == []


async def test_what_requests_used_and_how_they_went_is_in_it(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=TWO_MODELS)
    for _ in range(3):
        await detail(http, gateway, model="a/one")

    await build(gateway)

    signals = gateway.current.view.signals.targets[RouteId("a/one")][KeyId("a1")]
    assert signals.use[0].requests_minute == 3
    assert signals.use[0].tokens_minute > 0
    assert signals.statistics.alpha == pytest.approx(4.0, rel=1e-3)
    assert signals.statistics.beta == 1.0
    assert gateway.current.view.snapshot.workers == 1


async def test_a_new_configuration_is_ranked_by_the_snapshot_that_is_there(start: Start) -> None:
    gateway = await start(keys=ONE_KEY, models=TWO_MODELS)
    await build(gateway)
    version = gateway.current.view.snapshot.version

    more = {
        "providers": {"a": {"dialect": "openai", "base_url": "http://127.0.0.1:1/v1"}},
        "keys": ONE_KEY,
        "models": [*TWO_MODELS, {"provider": "a", "model": "three"}],
        "auth": {"mode": "none"},
    }
    loaded = load_bytes(json.dumps(more).encode(), {}).settings
    gateway.current.serving = build_serving(loaded, 2)
    await gateway.engine._sharing._follow()

    assert set(gateway.current.view.signals.targets) == {"a/one", "a/two", "a/three"}
    assert gateway.current.view.snapshot.version == version
