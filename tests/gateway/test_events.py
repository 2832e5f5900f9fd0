"""A worker acts on what others tell it before it asks Redis itself."""

import asyncio
import json
import re

import aiohttp
import pytest

from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.telemetry import catalog
from tests.fakes.gateway import Gateway
from tests.fakes.listening import listening
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import NO_RECORDS, chat, post, steer
from tests.gateway.test_health import ONE_KEY, ONE_MODEL, ask, calls, far, only_code, status

PLACE = "{a.a1}:a1:one"


async def tell(gateway: Gateway, text: str) -> None:
    """Publish as a script does, and wait until this worker has heard it."""
    prefix = gateway.settings.redis.prefix
    before = gateway.registry.value(catalog.EVENTS, "health")
    now_s, _ = await gateway.engine.redis.call("TIME")
    words = text.format(record=f"{prefix}:h:{PLACE}", now_ms=int(now_s) * 1000)
    async with asyncio.timeout(5):
        while gateway.registry.value(catalog.EVENTS, "health") == before:
            await gateway.engine.redis.call("PUBLISH", f"{prefix}:events", words)
            await asyncio.sleep(0.01)


async def test_a_target_of_which_a_rest_is_told_is_not_asked_for(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, telemetry=NO_RECORDS)
    await tell(gateway, "health {record} cooldown 60000 {now_ms}")
    before = gateway.engine.redis.calls

    response, text = await post(
        http, gateway.base_url, chat(steer(id="one", text="fine")), X_Gw_Detail="1"
    )

    body = json.loads(text)
    assert (response.status, only_code(body)) == (429, "cooldown")
    assert (calls(simulator, "one"), gateway.engine.redis.calls) == (0, before)
    assert 55_000 < body["error"]["retry_after_ms"] <= 60_000


async def test_a_target_that_is_told_to_be_well_is_asked_for_at_once(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)
    await tell(gateway, "health {record} breaker_open 60000 {now_ms}")
    refused, _ = await ask(http, gateway, "one")

    await tell(gateway, "health {record} well 0 {now_ms}")
    answered, _ = await ask(http, gateway, "two")

    assert (refused, answered, calls(simulator, "one", "two")) == (429, 200, 1)


async def test_a_worker_hears_of_the_rest_it_has_set_itself(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(
        providers=far(simulator), keys=ONE_KEY, models=ONE_MODEL, telemetry=NO_RECORDS
    )
    await tell(gateway, "health {record} well 0 {now_ms}")  # it listens
    heard = gateway.registry.value(catalog.EVENTS, "health")

    await ask(http, gateway, "one", status(429))

    await until_soon(lambda: gateway.registry.value(catalog.EVENTS, "health") > heard)
    before = gateway.engine.redis.calls
    code, body = await ask(http, gateway, "two")
    assert (code, only_code(body), gateway.engine.redis.calls) == (429, "cooldown", before)


async def test_what_is_told_holds_names_and_numbers_only(
    start: Start, http: aiohttp.ClientSession, redis_url: str
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)
    channel = f"{gateway.settings.redis.prefix}:events"
    async with listening(redis_url, channel=channel) as (bus, heard):
        await until_soon(lambda: bus.is_up)

        for number in range(3):
            await ask(http, gateway, f"a confidential prompt {number}", status(503))
        await until_soon(lambda: len(heard.texts) >= 2)

    shape = rb"(health|model|provider) t\w+:(h|m|pb):\{a[.a1]*\}(:\S+)?( [a-z_.\d]+)+"
    for text in heard.texts:
        assert re.fullmatch(shape, text), text


async def test_a_worker_that_hears_nothing_says_so_once(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)
    sharing = gateway.engine._sharing
    await until_soon(lambda: sharing._bus.is_up)
    await sharing._bus.close()
    await until_soon(lambda: not sharing._bus.is_up)
    monkeypatch.setattr("cluster_gw.app.sharing.DEAF_S", 0.0)

    for _ in range(4):
        await sharing._follow()
        await asyncio.sleep(0.001)

    lost = [line for line in gateway.events() if line["event"] == "events.lost"]
    assert [line["worker"] for line in lost] == ["w1"]
