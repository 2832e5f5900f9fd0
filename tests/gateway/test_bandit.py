"""Requests ranked by what was learned of earlier ones: the whole way through one worker."""

import json
from typing import Any

import aiohttp
import pytest

from cluster_gw.core.routing.statistics import Result, Sample
from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.units import KeyId, RouteId
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_health import ONE_KEY, ONE_MODEL, TWO_KEYS, TWO_MODELS, far, status
from tests.gateway.test_snapshot import build, detail

BALANCED = [{"id": "auto", "members": "all"}]
NO_PATIENCE = {"breaker": {"threshold": 100}, "bench": {"failures": 100}}


def order(answer: dict[str, Any]) -> list[str]:
    return [place["route"] for place in answer["ranking"]]


async def test_a_combo_that_names_no_strategy_is_balanced_and_tells_how_scores_came_about(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(combos=BALANCED)

    answer = await detail(http, gateway)

    assert answer["strategy"] == "balanced"
    for place in answer["ranking"]:
        assert [factor["weight"] for factor in place["factors"]] == [0.5, 0.25, 0.25]
        product = 1.0
        for multiplier in place["multipliers"]:
            product *= multiplier["value"]
        base = sum(factor["contribution"] for factor in place["factors"])
        assert place["score"] == pytest.approx(base * product, abs=1e-9)
    scores = [place["score"] for place in answer["ranking"]]
    assert scores == sorted(scores, reverse=True)
    assert answer["attempts"][0]["score"] == scores[0]


async def test_draws_differ_between_requests(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start(combos=BALANCED)

    drawn = {(await detail(http, gateway))["ranking"][0]["score"] for _ in range(5)}

    assert len(drawn) == 5


async def test_a_model_that_fails_is_left_alone_once_a_snapshot_knows(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(
        providers=far(simulator),
        keys=ONE_KEY,
        models=TWO_MODELS,
        combos=[{"id": "auto", "strategy": "reliable", "members": "all"}],
        routing=NO_PATIENCE,
    )
    for number in range(30):
        failing = steer(id=f"f{number}", fault=status(500), times=1)
        await post(http, gateway.base_url, chat(failing, model="a/one"))
        await post(http, gateway.base_url, chat(model="a/two"))
    await gateway.engine.settle()

    await build(gateway)
    firsts = [order(await detail(http, gateway))[0] for _ in range(20)]

    assert firsts.count("a/two") >= 19


async def test_a_task_is_taken_from_the_header_and_shifts_the_weights(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(combos=BALANCED)

    for header in ("X_Gw_Task_Type", "x_freellmapi_task_type"):
        _, body = await post(http, gateway.base_url, chat(), X_Gw_Detail="1", **{header: " Code "})
        first = json.loads(body)["ranking"][0]
        assert [f["weight"] for f in first["factors"]] == pytest.approx([0.5, 0.175, 0.325])
        assert "task code" in first["reasons"]


async def test_code_in_a_request_is_seen(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start(combos=BALANCED)

    asked = await detail(http, gateway, text="What is wrong with this?\n```\nfoo(\n```")
    talked = await detail(http, gateway, text="What is wrong with me?")

    assert "task code" in asked["ranking"][0]["reasons"]
    assert "task code" not in talked["ranking"][0]["reasons"]


async def test_a_task_that_nobody_knows_is_refused(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(combos=BALANCED)

    response, body = await post(http, gateway.base_url, chat(), X_Gw_Task_Type="poetry")

    error = json.loads(body)["error"]
    assert (response.status, error["code"], error["param"]) == (
        400,
        "invalid_header",
        "X-Gw-Task-Type",
    )
    assert "'auto', 'code', 'chat'" in error["message"]


async def test_a_month_that_nears_its_end_lowers_the_score(
    start: Start, http: aiohttp.ClientSession
) -> None:
    models = [
        {"provider": "a", "model": "one", "monthly_tokens": 100},
        {"provider": "b", "model": "two"},
    ]
    gateway = await start(combos=BALANCED, models=models)
    for _ in range(12):
        await post(http, gateway.base_url, chat(model="a/one"))
    await gateway.engine.settle()

    await build(gateway)
    answer = await detail(http, gateway)

    (scarce,) = (place for place in answer["ranking"] if place["route"] == "a/one")
    assert scarce["multipliers"][0] == {
        "name": "headroom",
        "value": pytest.approx(0.1),
        "detail": "0.000 left",
    }
    assert "headroom 0.100" in scarce["reasons"]


async def test_the_key_that_did_well_goes_first_once_two_were_used(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=TWO_KEYS, models=ONE_MODEL)
    tallies, prefix = gateway.engine._admissions.tallies, gateway.settings.redis.prefix
    for result, key in ((Result.FAILURE, "a1"), (Result.SUCCESS, "a2")):
        for _ in range(60):
            tallies.add(f"{prefix}:b:{{a.{key}}}:{key}:one", Sample(result=result))
    await tallies.flush()
    await build(gateway)

    for _ in range(10):
        await post(http, gateway.base_url, chat())
    await gateway.engine.settle()
    gateway.engine._sharing._builder._due_s = 0.0
    await build(gateway)

    used = gateway.current.view.signals.targets[RouteId("a/one")]
    assert [used[KeyId(key)].use[0].requests_minute for key in ("a1", "a2")] == [0, 10]


async def test_the_key_with_most_left_goes_first_where_that_is_asked_for(
    start: Start, http: aiohttp.ClientSession
) -> None:
    keys = [
        {**TWO_KEYS[0], "limits": {"rpm": 20}},
        {**TWO_KEYS[1], "limits": {"rpm": 1000}},
    ]
    gateway = await start(keys=keys, models=ONE_MODEL, routing={"key_selection": "least-remaining"})
    for _ in range(4):
        await post(http, gateway.base_url, chat())
    await gateway.engine.settle()
    await build(gateway)

    for _ in range(6):
        await post(http, gateway.base_url, chat())
    await gateway.engine.settle()
    gateway.engine._sharing._builder._due_s = 0.0
    await build(gateway)

    used = gateway.current.view.signals.targets[RouteId("a/one")]
    requests = [used[KeyId(key)].use[0].requests_minute for key in ("a1", "a2")]
    assert requests[0] <= 3
    assert sum(requests) == 10


@pytest.mark.parametrize("peak", [True, False])
async def test_peak_hours_are_told_before_the_first_snapshot(
    start: Start, http: aiohttp.ClientSession, peak: bool
) -> None:
    always = {"enabled": peak, "start_hour": 1, "end_hour": 0}
    never_midnight = {"enabled": peak, "start_hour": 0, "end_hour": 1}
    reasons: list[str] = []
    for hours in (always, never_midnight):
        gateway = await start(combos=BALANCED, routing={"peak_hours": hours})
        answer = await detail(http, gateway)
        assert answer["snapshot"] == {"version": 0, "age_ms": None}
        reasons += answer["ranking"][0]["reasons"]

    assert reasons.count("peak-adjusted") == int(peak)
