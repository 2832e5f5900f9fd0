"""A key that its provider refused is checked at once; what that finds decides how much rests."""

import asyncio
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest

from cluster_gw.app.health import wall_ms
from cluster_gw.simulator.config import SimulatorConfig
from cluster_gw.simulator.server import RunningSimulator, serve_simulator
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import load_scripts
from cluster_gw.store.status_board import StatusBoard
from cluster_gw.telemetry import catalog
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.test_health import ONE_KEY, TWO_MODELS, ask, record, status


@pytest.fixture
async def strict() -> AsyncIterator[RunningSimulator]:
    """A provider that knows no key."""
    running = await serve_simulator(SimulatorConfig(any_model=True))
    yield running
    await running.close()


async def test_key_that_is_refused_again_is_used_for_no_model(
    start: Start, http: aiohttp.ClientSession, strict: RunningSimulator
) -> None:
    provider = {"a": {"dialect": "openai", "base_url": strict.base_url}}
    gateway = await start(providers=provider, keys=ONE_KEY, models=TWO_MODELS)

    refused, _ = await ask(http, gateway, "a", model="a/one")
    await gateway.engine.health.checks.settle()
    other, body = await ask(http, gateway, "b", model="a/two")

    (skipped,) = body["error"]["skipped"]
    assert (refused, other, body["error"]["code"]) == (502, 503, "no_eligible_providers")
    assert (skipped["code"], skipped["detail"]) == (
        "key_invalid",
        "the key was rejected by its provider",
    )
    assert "retry_after_ms" not in skipped
    assert gateway.registry.value(catalog.KEY_CHECKS, "a", "rejected") == 1
    assert {"key.rejected", "key.barred"} <= {event["event"] for event in gateway.events()}


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


async def test_worker_hears_at_once_what_another_found_out_about_a_key(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=TWO_MODELS)
    engine = gateway.engine
    names = Keys(gateway.settings.redis.prefix)
    queue = engine.deps.shell.accounts._admissions.settlements
    other = StatusBoard(engine.redis, load_scripts(), names, queue, wall_ms=wall_ms)
    served, _ = await ask(http, gateway, "a")

    began_s = time.monotonic()
    await other.book_check("a", "a1", "rejected", "auth", disable_after=3, took_ms=0)
    await until_soon(lambda: bool(engine.health.board))
    heard_s = time.monotonic() - began_s
    refused, _ = await ask(http, gateway, "b")
    await asyncio.sleep(0.002)  # a check of the same millisecond counts as an older one
    await other.book_check("a", "a1", "valid", "-", disable_after=3, took_ms=0)
    await until_soon(lambda: not engine.health.board)

    assert (served, refused, (await ask(http, gateway, "c"))[0]) == (200, 503, 200)
    assert heard_s < 0.5
    assert gateway.registry.value(catalog.EVENTS, "status") == 2
