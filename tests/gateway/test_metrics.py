"""What one worker tells of itself, and of the fleet, after traffic."""

import json
from typing import Any, Final

import aiohttp
import pytest

from cluster_gw.app import build_serving
from cluster_gw.settings import load_bytes
from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.telemetry import catalog
from cluster_gw.telemetry.labels import hashed
from cluster_gw.telemetry.metric import Metric, MetricKind
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_health import ONE_KEY, TWO_MODELS, far, status
from tests.gateway.test_snapshot import build

KEY: Final = hashed("a1")
SESSION: Final = {"X_Gw_Session_Id": "one"}
TALK: Final[dict[str, Any]] = {
    "messages": [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "good day"},
        {"role": "user", "content": "and on"},
    ]
}


def samples(gateway: Gateway, metric: Metric) -> dict[tuple[str, ...], float]:
    """The samples of a metric, by their labels in the declared order."""
    (family,) = (f for f in gateway.registry.snapshot().families if f.name == metric.name)
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


async def test_each_key_tells_the_state_of_its_routes_and_the_share_of_its_limits(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    models = [{**model, "limits": {"rpm": 4, "tpd": 1_000_000}} for model in TWO_MODELS]
    gateway = await start(providers=far(simulator), keys=ONE_KEY, models=models)
    await post(http, gateway.base_url, chat(model="a/two"))
    await post(
        http, gateway.base_url, chat(steer(id="x", fault=status(429), times=1), model="a/one")
    )
    await gateway.engine.settle()

    await build(gateway)

    states = samples(gateway, catalog.KEY_ROUTES)
    used = samples(gateway, catalog.KEY_USE)
    assert states == {("a", KEY, "ok"): 1, ("a", KEY, "cooldown"): 1}
    assert used["a", KEY, "rpm"] == pytest.approx(0.25)
    assert 0 < used["a", KEY, "tpd"] < 0.01
    assert set(used) == {("a", KEY, "rpm"), ("a", KEY, "tpd")}
    assert samples(gateway, catalog.LEASES) == {("a",): 0}
    assert samples(gateway, catalog.WINDOWS_OVER) == {("rpm",): 0, ("rpd",): 0, ("concurrency",): 0}


async def test_a_window_that_counts_more_than_its_limit_is_told(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    sections: dict[str, Any] = {"providers": far(simulator), "keys": ONE_KEY}
    gateway = await start(**sections, models=[{**TWO_MODELS[0], "limits": {"rpm": 4}}])
    for _ in range(3):
        await post(http, gateway.base_url, chat())
    await gateway.engine.settle()
    await build(gateway)

    lower = {**sections, "auth": {"mode": "none"}}
    lower["models"] = [{**TWO_MODELS[0], "limits": {"rpm": 2}}]
    gateway.current.serving = build_serving(load_bytes(json.dumps(lower).encode(), {}).settings, 2)
    gateway.engine.refit()

    assert samples(gateway, catalog.WINDOWS_OVER)["rpm",] == 1
    assert samples(gateway, catalog.KEY_USE) == {("a", KEY, "rpm"): 1.5}


async def test_routes_tell_what_is_believed_of_them(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=TWO_MODELS)
    await post(http, gateway.base_url, chat(model="a/one"))
    await gateway.engine.settle()

    await build(gateway)

    assert samples(gateway, catalog.ROUTE_SUCCESS) == {
        ("a", "one"): pytest.approx(2 / 3, abs=1e-3),
        ("a", "two"): 0.5,
    }
    assert samples(gateway, catalog.ROUTE_SAMPLES)["a", "one"] == pytest.approx(1, abs=1e-3)
    assert samples(gateway, catalog.ROUTE_PENALTY) == {("a", "one"): 0, ("a", "two"): 0}
    assert set(samples(gateway, catalog.ROUTE_TOKEN_SECONDS)) == {("a", "one")}


async def test_a_route_that_is_gone_is_not_told_any_more(start: Start) -> None:
    gateway = await start(keys=ONE_KEY, models=TWO_MODELS)
    before = samples(gateway, catalog.KEY_ROUTES)

    document = {
        "auth": {"mode": "none"},
        "providers": {"a": {"dialect": "openai", "base_url": "http://127.0.0.1:1/v1"}},
        "keys": ONE_KEY,
        "models": TWO_MODELS[:1],
    }
    gateway.current.serving = build_serving(
        load_bytes(json.dumps(document).encode(), {}).settings, 2
    )
    gateway.engine.refit()

    assert before == {("a", KEY, "ok"): 2}
    assert samples(gateway, catalog.KEY_ROUTES) == {("a", KEY, "ok"): 1}


async def test_staying_on_a_route_and_yielding_are_counted(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    combo = {"id": "auto", "sticky": {"enabled": True}, "members": "all"}
    url = far(simulator)["a"]
    gateway = await start(providers={"a": url, "b": url}, combos=[combo])
    first, _ = await post(http, gateway.base_url, chat(**TALK), **SESSION)
    await gateway.engine.settle()
    await post(http, gateway.base_url, chat(**TALK), **SESSION)
    fault = steer(id="x", fault=status(429), times=1)
    await post(http, gateway.base_url, chat(fault, model=first.headers["X-Routed-Via"]))
    await gateway.engine.settle()
    await build(gateway)
    await post(http, gateway.base_url, chat(**TALK), **SESSION)

    moves = samples(gateway, catalog.RANKING_MOVES)
    assert moves["pin_held",] == 1
    assert moves["pin_yielded",] == 1


async def test_only_the_builder_of_snapshots_counts_changes_of_health(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(providers=far(simulator), keys=ONE_KEY, models=TWO_MODELS)
    await gateway.engine._sharing._builder.campaign()
    other = await start(
        providers=far(simulator),
        keys=ONE_KEY,
        models=TWO_MODELS,
        prefix=gateway.settings.redis.prefix,
    )

    await post(http, other.base_url, chat(steer(id="x", fault=status(429), times=1), model="a/one"))
    await other.engine.settle()
    async with aiohttp.ClientSession():  # a turn of the loop, so that both have heard of it
        await post(http, other.base_url, chat(model="a/two"))

    assert samples(gateway, catalog.HEALTH_CHANGES) == {("cooldown",): 1}
    assert samples(other, catalog.HEALTH_CHANGES) == {}


async def test_what_a_request_waited_for_redis_is_told_once_for_each(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=TWO_MODELS)
    for _ in range(3):
        await post(http, gateway.base_url, chat())
    await build(gateway)

    waits = gateway.registry.histogram(catalog.REDIS_WAIT_SECONDS)
    assert sum(waits.count()) == 3
    assert 0 < waits.total < 3
    calls = samples(gateway, catalog.REDIS_SCRIPT_CALLS)
    seconds = samples(gateway, catalog.REDIS_SCRIPT_SECONDS)
    assert calls["snapshot/publish",] == 1
    assert set(calls) == set(seconds)
    assert all(0 < took < 5 for took in seconds.values())


async def test_what_never_happened_is_told_as_nought(start: Start) -> None:
    gateway = await start(keys=ONE_KEY, models=TWO_MODELS)

    counters = [
        metric
        for metric in catalog.METRICS
        if metric.kind is MetricKind.COUNTER and not metric.labels
    ]
    assert [metric.name for metric in counters if samples(gateway, metric).keys() != {()}] == []
    assert samples(gateway, catalog.CRASHES) == {(): 0}
