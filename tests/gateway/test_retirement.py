"""A model that its provider has no more is left alone after proof, and comes back by an answer."""

import json
from typing import Any

import aiohttp
import pytest

from cluster_gw.core.limits.model_status import TRIED_AGAIN_MS
from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.telemetry import catalog
from tests.fakes.gateway import Gateway
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_health import ONE_KEY, ONE_MODEL, TWO_KEYS, ask, calls

NAME = "a.one"
NO_BENCH = {"bench": {"failures": 100}}


def denied(code: int, words: str) -> dict[str, Any]:
    """A vendor's answer that denies having the model."""
    body = {"error": {"message": words, "type": "invalid_request_error"}}
    return {"kind": "status", "code": code, "body": body}


GONE, REMOVED = denied(410, "Gone."), denied(404, "The model has been removed.")
UNHEARD_OF = denied(404, "The model does not exist.")


async def known(gateway: Gateway) -> dict[str, str]:
    """What all workers know of models by now: name and status."""
    await gateway.engine.health.board.refresh()
    models = gateway.engine.health.board.models
    return {name: record.status.value for name, record in models.items()}


async def age(gateway: Gateway, by_ms: int) -> None:
    """Have the last proof be older, and the worker know it."""
    record = gateway.engine.health.board.models[NAME]
    text = f"{record.status} {record.at_ms - by_ms} {record.request} {record.reason}"
    place = f"{gateway.settings.redis.prefix}:{{status}}:models"
    await gateway.engine.redis.call("HSET", place, NAME, text)
    await known(gateway)


async def lift_rests(gateway: Gateway) -> None:
    """Let the rests end that failures led to."""
    redis, prefix = gateway.engine.redis, gateway.settings.redis.prefix
    for name in await redis.call("KEYS", f"{prefix}:h:*"):
        await redis.call("DEL", name)
    gateway.engine.deps.shell.admitter._admissions.bars.clear()


async def test_model_that_is_gone_is_called_no_more_and_says_why(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing=NO_BENCH)

    first, _ = await ask(http, gateway, "first", GONE)
    await until_soon(lambda: bool(gateway.engine.health.board))
    again, body = await ask(http, gateway, "again")

    (skipped,) = body["error"]["skipped"]
    assert (first, again, calls(simulator, "again")) == (404, 503, 0)
    assert body["error"]["code"] == "no_eligible_providers"
    assert skipped["code"] == "model_retired"
    assert skipped["detail"] == "the model was retired by its provider"
    (event,) = [one for one in gateway.events() if one["event"] == "model.retired"]
    assert (event["provider"], event["model"], event["reason"]) == ("a", "one", "gone")
    gateway.registry.snapshot()
    assert gateway.registry.value(catalog.MODELS_RETIRED) == 1


async def test_other_models_of_the_combo_serve_on(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    rules = [{"fault": GONE, "match": {"model": "one"}, "times": None}]

    answers = []
    for _ in range(3):
        response, _ = await post(http, gateway.base_url, chat(steer(rules=rules)))
        await gateway.engine.settle()
        await known(gateway)
        fallbacks = response.headers.get("x-fallback-attempts", "0")
        answers.append((response.status, response.headers["x-routed-via"], fallbacks))

    assert answers == [(200, "b/two", "1"), (200, "b/two", "0"), (200, "b/two", "0")]


async def test_sibling_keys_of_one_request_are_one_probable_proof(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(keys=TWO_KEYS, models=ONE_MODEL, routing=NO_BENCH)

    await ask(http, gateway, "first", REMOVED, times=2)
    after_one = await known(gateway)
    await lift_rests(gateway)
    await ask(http, gateway, "second", REMOVED)

    assert after_one == {NAME: "suspected"}
    assert await known(gateway) == {NAME: "retired"}


@pytest.mark.parametrize("fault", [UNHEARD_OF, denied(404, "m is not available for your account")])
async def test_model_that_is_only_not_found_is_never_retired(
    start: Start, http: aiohttp.ClientSession, fault: dict[str, Any]
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing=NO_BENCH)

    for number in range(5):
        await ask(http, gateway, f"n{number}", fault)
        await lift_rests(gateway)

    assert await known(gateway) == {}


async def test_answer_clears_a_suspicion(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing=NO_BENCH)

    await ask(http, gateway, "first", REMOVED)
    suspected = await known(gateway)
    await age(gateway, 1000)  # when a request was admitted is known to the second
    await lift_rests(gateway)
    answered = {name: (await ask(http, gateway, name))[0] for name in ("second", "third")}

    assert suspected == {NAME: "suspected"}
    assert set(answered.values()) == {200}
    assert await known(gateway) == {}
    assert "model.restored" in {event["event"] for event in gateway.events()}


async def test_retired_model_is_tried_after_a_day_and_an_answer_restores_it(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing=NO_BENCH)
    await ask(http, gateway, "first", GONE)
    await lift_rests(gateway)
    retired = await known(gateway)
    barred, _ = await ask(http, gateway, "barred")
    await age(gateway, TRIED_AGAIN_MS)

    tried, _ = await ask(http, gateway, "tried")

    assert (retired, barred, tried) == ({NAME: "retired"}, 503, 200)
    assert await known(gateway) == {}


async def test_operator_brings_a_model_back_by_deleting_its_field(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing=NO_BENCH)
    await ask(http, gateway, "first", GONE)
    await lift_rests(gateway)
    prefix = gateway.settings.redis.prefix

    await gateway.engine.redis.call("HDEL", f"{prefix}:{{status}}:models", NAME)
    await known(gateway)

    assert (await ask(http, gateway, "again"))[0] == 200


async def test_proof_holds_no_text_of_the_vendor(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing=NO_BENCH)
    await ask(http, gateway, "first", denied(404, "secret words: the model was sunset"))

    stored = await gateway.engine.redis.call(
        "HGET", f"{gateway.settings.redis.prefix}:{{status}}:models", NAME
    )

    assert stored.split()[0] == b"retired"
    assert stored.split()[3] == b"sunset"
    assert b"secret" not in stored
    assert "secret words" not in json.dumps(gateway.events())
