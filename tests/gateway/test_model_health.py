"""Penalty and bench of a model through one worker: what several keys have in common."""

from typing import Any

import aiohttp

from cluster_gw.core.limits.standing import ModelStanding
from cluster_gw.pipeline.condition import list_models
from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.telemetry import catalog
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.test_health import ONE_KEY, ONE_MODEL, TWO_KEYS, ask, calls, status

THREE_KEYS = [{"id": f"a{n}", "provider": "a", "secret": f"secret-of-a{n}"} for n in (1, 2, 3)]
SICK = status(503)


async def standing(gateway: Gateway) -> ModelStanding | None:
    found = await gateway.engine.health.models.look([("a", "one")])
    return next(iter(found.values()), None)


async def fail_on_every_key(http: aiohttp.ClientSession, gateway: Gateway, name: str) -> None:
    """One request that fails on each of the three keys."""
    answered, _ = await ask(http, gateway, name, SICK, times=3)
    assert answered == 502


async def test_model_that_failed_on_three_keys_rests_on_all_of_them(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(keys=THREE_KEYS, models=ONE_MODEL)

    await fail_on_every_key(http, gateway, "sick")
    refused, body = await ask(http, gateway, "next")

    skipped = body["error"]["skipped"]
    assert (refused, calls(simulator, "sick"), calls(simulator, "next")) == (429, 3, 0)
    assert {one["code"] for one in skipped} == {"bench"}
    assert {one["detail"] for one in skipped} == {"the model rests on all its keys after failures"}
    assert 590_000 < skipped[0]["retry_after_ms"] <= 600_000
    assert gateway.registry.value(catalog.MODEL_BENCHES, "a") == 1


async def test_bench_is_as_long_as_it_was_configured(
    start: Start, http: aiohttp.ClientSession
) -> None:
    bench = {"failures": 1, "for_s": 77.0}
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing={"bench": bench})

    await ask(http, gateway, "sick", SICK)
    _, body = await ask(http, gateway, "next")

    assert 76_000 < body["error"]["skipped"][0]["retry_after_ms"] <= 77_000


async def test_other_models_of_the_keys_serve_while_one_is_benched(
    start: Start, http: aiohttp.ClientSession
) -> None:
    models = [*ONE_MODEL, {"provider": "a", "model": "two"}]
    gateway = await start(keys=THREE_KEYS, models=models)
    for number in range(3):
        await ask(http, gateway, f"missing-{number}", status(404), model="a/one")

    benched, body = await ask(http, gateway, "benched", model="a/one")
    served, _ = await ask(http, gateway, "next")

    assert (benched, body["error"]["skipped"][0]["code"]) == (429, "bench")
    assert served == 200


async def test_worker_learns_of_a_bench_that_another_set(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(keys=THREE_KEYS, models=ONE_MODEL)
    await fail_on_every_key(http, gateway, "sick")
    prefix = gateway.settings.redis.prefix
    other = await start(keys=THREE_KEYS, models=ONE_MODEL, prefix=prefix)

    await other.engine.health.models.refresh(list_models(other.current.serving.runtime))
    refused, _ = await ask(http, other, "next")

    assert (refused, calls(simulator, "next")) == (429, 0)


async def test_only_a_failure_without_a_usable_sibling_costs_points(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=TWO_KEYS, models=ONE_MODEL)

    served, _ = await ask(http, gateway, "one-key", SICK)
    with_sibling = await standing(gateway)
    failed, _ = await ask(http, gateway, "both-keys", SICK, times=2)
    without = await standing(gateway)

    assert (served, with_sibling) == (200, None)
    assert without is not None
    assert (failed, without.points) == (502, 1.0)


async def test_answers_take_points_away_and_clear_failures(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)
    seen: list[tuple[float, int]] = []

    for number, fault in enumerate([SICK, SICK, None, None, None]):
        await ask(http, gateway, f"n{number}", fault)
        now = await standing(gateway)
        seen.append((now.points, now.failures) if now else (0.0, 0))

    assert seen == [(1.0, 1), (2.0, 2), (1.0, 0), (0.0, 0), (0.0, 0)]


async def test_answers_of_a_model_that_is_well_are_not_booked(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)

    for number in range(3):
        await ask(http, gateway, f"n{number}")
    prefix: Any = gateway.settings.redis.prefix

    assert await gateway.engine.redis.call("EXISTS", f"{prefix}:hz:{{a}}") == 0
