"""A key that its provider refused is checked at once; what that finds decides how much rests."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from cluster_gw.simulator.config import SimulatorConfig
from cluster_gw.simulator.server import RunningSimulator, serve_simulator
from cluster_gw.telemetry import catalog
from tests.gateway.conftest import Start
from tests.gateway.test_health import ONE_KEY, TWO_MODELS, ask, record, status

MINUTE_MS = 60_000


@pytest.fixture
async def strict() -> AsyncIterator[RunningSimulator]:
    """A provider that knows no key."""
    running = await serve_simulator(SimulatorConfig(any_model=True))
    yield running
    await running.close()


async def test_key_that_is_refused_again_rests_on_all_its_models(
    start: Start, http: aiohttp.ClientSession, strict: RunningSimulator
) -> None:
    provider = {"a": {"dialect": "openai", "base_url": strict.base_url}}
    gateway = await start(providers=provider, keys=ONE_KEY, models=TWO_MODELS)

    refused, _ = await ask(http, gateway, "a", model="a/one")
    await gateway.engine.health.checks.settle()
    other, body = await ask(http, gateway, "b", model="a/two")

    known = await record(gateway, "{a.a1}:a1:_all")
    assert (refused, other) == (502, 429)
    assert known["rest_reason"] == "auth"
    assert int(known["rest_until"]) - int(known["rest_set_at"]) == 15 * MINUTE_MS
    assert body["error"]["skipped"][0]["detail"] == "the key rests after a failure"
    assert gateway.registry.value(catalog.KEY_CHECKS, "a", "rejected") == 1
    assert "key.rejected" in {event["event"] for event in gateway.events()}


async def test_key_that_is_valid_after_all_serves_its_other_models(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=TWO_MODELS)

    await ask(http, gateway, "a", status(401), model="a/one")
    await gateway.engine.health.checks.settle()
    served, _ = await ask(http, gateway, "b", model="a/two")

    assert served == 200
    assert (await record(gateway))["rest_reason"] == "auth"
    assert gateway.registry.value(catalog.KEY_CHECKS, "a", "valid") == 1


async def test_operators_ceiling_caps_the_rest_of_a_rejected_key(
    start: Start, http: aiohttp.ClientSession, strict: RunningSimulator
) -> None:
    provider = {"a": {"dialect": "openai", "base_url": strict.base_url}}
    routing = {"cooldown": {"ceiling_s": 60.0}}
    gateway = await start(providers=provider, keys=ONE_KEY, models=TWO_MODELS, routing=routing)

    await ask(http, gateway, "a", model="a/one")
    await gateway.engine.health.checks.settle()

    known = await record(gateway, "{a.a1}:a1:_all")
    assert int(known["rest_until"]) - int(known["rest_set_at"]) == MINUTE_MS
