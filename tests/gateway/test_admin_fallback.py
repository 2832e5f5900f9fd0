"""The chain of a combo, its order and what ranks it, through the admin API."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest

from cluster_gw.pipeline.view import View
from cluster_gw.units import RouteId
from tests.fakes.gateway import Gateway
from tests.fakes.group import SimulatedProvider
from tests.fakes.redis_server import RedisServer


def config(provider: SimulatedProvider) -> dict[str, Any]:
    return {
        "providers": {"a": {"dialect": "openai", "base_url": provider.base_url}},
        "keys": [{"id": "a1", "provider": "a", "secret": "upstream-secret"}],
        "models": [
            {"provider": "a", "model": "one", "tier": "Medium", "speed_rank": 5},
            {"provider": "a", "model": "two", "tier": "Frontier", "speed_rank": 9},
            {"provider": "a", "model": "three", "speed_rank": 1, "monthly_tokens": "9M"},
        ],
        "combos": [
            {"id": "auto", "family": "classic", "strategy": "priority", "members": "all"},
            {"id": "clever"},
        ],
    }


@pytest.fixture
async def gateway(server: RedisServer, provider: SimulatedProvider) -> AsyncIterator[Gateway]:
    server.command("FLUSHALL")
    async with Gateway(config(provider), server.url) as running:
        yield running


def chain(answer: httpx.Response) -> list[tuple[str, bool]]:
    assert answer.status_code == 200, answer.text
    return [(item["route"], item["enabled"]) for item in answer.json()["items"]]


async def routed_via(gateway: Gateway) -> str:
    body = {"messages": [{"role": "user", "content": "x"}]}
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{gateway.base_url}/v1/chat/completions", json=body)
    return answer.headers["x-routed-via"]


async def test_chain_of_the_default_combo_is_shown_in_order(admin: httpx.AsyncClient) -> None:
    shown = (await admin.get("/api/fallback")).json()

    assert shown["combo"] == "auto"
    assert [(item["route"], item["priority"]) for item in shown["items"]] == [
        ("a/one", 1),
        ("a/two", 2),
        ("a/three", 3),
    ]
    assert shown["items"][0]["keys"] == ["a1"]


@pytest.mark.parametrize(
    "body",
    [
        ["a/three", {"route": "a/two", "enabled": False}],
        {"items": [{"route": "a/three"}, {"route": "a/two", "enabled": False}]},
        [
            {"platform": "a", "modelId": "two", "enabled": False, "priority": 20},
            {"provider": "a", "model": "three", "priority": 10},
        ],
    ],
)
async def test_order_and_flags_are_taken_in_each_spelling(
    gateway: Gateway, admin: httpx.AsyncClient, body: Any
) -> None:
    answer = await admin.put("/api/fallback", json=body)

    assert chain(answer) == [("a/three", True), ("a/two", False), ("a/one", True)]
    assert await routed_via(gateway) == "a/three"


async def test_chain_of_another_combo_is_named(admin: httpx.AsyncClient) -> None:
    await admin.put("/api/fallback?combo=clever", json=["a/two"])

    assert chain(await admin.get("/api/fallback?combo=clever"))[0] == ("a/two", True)
    assert chain(await admin.get("/api/fallback"))[0] == ("a/one", True)
    assert (await admin.get("/api/fallback?combo=none")).status_code == 404


async def test_chain_that_was_shown_can_be_sent_back(
    gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    shown = (await admin.get("/api/fallback")).json()
    signals, ranks = gateway.current.view.signals, {RouteId("a/one"): 7}
    gateway.current.view = View(signals=msgspec.structs.replace(signals, speed_ranks=ranks))

    answer = await admin.put("/api/fallback", json=shown)

    assert answer.json()["config_version"] == shown["config_version"]  # nothing was changed
    assert [one["speed_rank_measured"] for one in answer.json()["items"]] == [7, None, None]
    assert chain(answer) == [("a/one", True), ("a/two", True), ("a/three", True)]


@pytest.mark.parametrize(
    ("preset", "first"), [("intelligence", "a/two"), ("speed", "a/three"), ("budget", "a/three")]
)
async def test_chain_is_sorted_by_one_quality_and_keeps_its_flags(
    admin: httpx.AsyncClient, preset: str, first: str
) -> None:
    await admin.put("/api/fallback", json=[{"route": first, "enabled": False}])
    await admin.put("/api/fallback", json=["a/one"])

    answer = await admin.post(f"/api/fallback/sort/{preset}")

    assert chain(answer)[0] == (first, False)
    assert chain(answer) == chain(await admin.get("/api/fallback"))


@pytest.mark.parametrize(
    ("method", "path", "body", "param"),
    [
        ("PUT", "", ["a/nine"], "items[0].route"),
        ("PUT", "", ["a/one", "a/one"], "items[1]"),
        ("PUT", "", [{"route": "a/one", "enabled": 1}], "items[0].enabled"),
        ("PUT", "", [7], "items[0]"),
        ("PUT", "", 7, "items"),
        ("PUT", "", [{"route": "a/one", "priority": 1}, "a/two"], "items"),
        ("POST", "/sort/beauty", None, "preset"),
        ("PUT", "/routing", {"strategy": "fastest"}, "strategy"),
        ("PUT", "/routing", {"weights": {"health": 0}}, "weights"),
        ("PUT", "/routing", {"exploreEnabled": "yes"}, "explore_enabled"),
        ("PUT", "/routing", {"cooldownCeilingMs": "x"}, "cooldown_ceiling_ms"),
        ("PUT", "/routing", {"cooldownCeilingMs": 5}, "cooldown.ceiling_s"),
        ("PUT", "/routing", {"peakTimezone": "Mars"}, "peak_hours.timezone"),
        ("PUT", "/routing", {"taskWeightShare": 1.5}, "task_weight_share"),
        ("PUT", "/routing", {"keySelection": "best"}, "key_selection"),
        ("PUT", "/routing", {"retries": 5}, "retries"),
        ("PUT", "/routing", {"peakHours": 5, "peakStartHour": 3}, "peak_hours"),
    ],
)
async def test_what_cannot_be_done_names_its_place_and_stores_nothing(
    admin: httpx.AsyncClient, method: str, path: str, body: Any, param: str
) -> None:
    answer = await admin.request(method, f"/api/fallback{path}", json=body)

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text
    assert (await admin.get("/api/config")).json()["changes"] == {}


async def test_strategy_and_tuning_change_in_one_step(admin: httpx.AsyncClient) -> None:
    body = {
        "strategy": "custom",
        "weights": {"reliability": 1, "speed": 3},
        "exploreEnabled": True,
        "keySelectionStrategy": "least-remaining",
        "peakHoursAdjust": True,
        "peakStartHour": 8,
        "cooldownCeilingMs": 600_000,
        "taskWeightShare": 0.5,
    }

    answer = await admin.put("/api/fallback/routing?combo=clever", json=body)

    told = answer.json()
    assert answer.status_code == 200, told
    assert told["config_version"] == 2
    assert (told["strategy"], told["custom_weights"]) == ("custom", body["weights"])
    assert told["weights"] == {"reliability": 0.25, "speed": 0.75, "intelligence": 0.0}
    assert (told["explore_enabled"], told["explore_unmeasured"]) == (True, 0.1)
    assert (told["key_selection"], told["task_weight_share"]) == ("least-remaining", 0.5)
    assert told["peak_hours"]["enabled"] is True
    assert (told["peak_hours"]["start_hour"], told["peak_hours"]["end_hour"]) == (8, 6)
    assert told["cooldown_ceiling_ms"] == 600_000


async def test_scores_are_those_of_the_means_best_first(admin: httpx.AsyncClient) -> None:
    first = (await admin.get("/api/fallback/routing?combo=clever")).json()
    second = (await admin.get("/api/fallback/routing?combo=clever")).json()

    assert first["scores"] == second["scores"]
    assert [one["route"] for one in first["scores"]] == ["a/two", "a/one", "a/three"]
    assert first["scores"][0]["intelligence"] == 1.0
    assert first["scores"][0]["reliability"] == 0.5
    values = [one["score"] for one in first["scores"]]
    assert values == sorted(values, reverse=True)


async def test_combo_that_only_orders_has_no_weights_and_no_scores(
    admin: httpx.AsyncClient,
) -> None:
    told = (await admin.get("/api/fallback/routing")).json()

    assert (told["combo"], told["weights"]) == ("auto", None)
    assert [one["score"] for one in told["scores"]] == [None, None, None]


@pytest.mark.parametrize("before", [{}, {"strategy": "custom", "weights": {"speed": 3}}])
async def test_what_was_shown_of_the_routing_changes_nothing_when_it_is_sent_back(
    admin: httpx.AsyncClient, before: dict[str, Any]
) -> None:
    path = "/api/fallback/routing?combo=clever"
    await admin.put(path, json=before)
    await admin.put(path, json={"strategy": "balanced"})
    shown = (await admin.get(path)).json()

    answer = await admin.put(path, json=shown)

    again = answer.json()
    for one in (shown, again):
        one.pop("warnings", None)
        del one["config_version"]
    assert again == shown
    assert (again["custom_weights"] or {}).get("speed") == before.get("weights", {}).get("speed")


async def test_weights_that_are_sent_and_not_those_in_force_are_the_new_ones(
    admin: httpx.AsyncClient,
) -> None:
    path = "/api/fallback/routing?combo=clever"
    shown = (await admin.get(path)).json()
    shown |= {"strategy": "custom", "weights": {"reliability": 1, "intelligence": 1}}

    told = (await admin.put(path, json=shown)).json()

    assert told["custom_weights"] == {"reliability": 1, "intelligence": 1}
    assert told["weights"] == {"reliability": 0.5, "speed": 0.0, "intelligence": 0.5}


async def test_custom_weights_alone_are_saved(admin: httpx.AsyncClient) -> None:
    path = "/api/fallback/routing?combo=clever"

    told = (
        await admin.put(path, json={"strategy": "custom", "customWeights": {"speed": 1}})
    ).json()

    assert told["custom_weights"] == {"speed": 1}
    assert told["weights"] == {"reliability": 0.0, "speed": 1.0, "intelligence": 0.0}


async def test_use_of_the_month_is_told_for_each_route_of_the_chain(
    admin: httpx.AsyncClient,
) -> None:
    told = (await admin.get("/api/fallback/token-usage?combo=clever")).json()

    assert [one["route"] for one in told["items"]] == ["a/one", "a/two", "a/three"]
    for one in told["items"]:
        assert (one["used_tokens"], one["keys"], one["enabled"]) == (0, 1, True)
        assert one["name"] == one["model"]
        assert (one["budget_tokens"] is None) == (one["remaining"] is None)
    assert (told["used_tokens"], told["budget_tokens"]) == (0, 9_000_000)


@pytest.mark.parametrize("query", ["", "?combo=clever", "?combo="])
async def test_combo_may_be_named_in_the_body(admin: httpx.AsyncClient, query: str) -> None:
    items = ["a/three", "a/one"]

    chain_told = await admin.put(f"/api/fallback{query}", json={"combo": "clever", "items": items})
    body = {"combo": "clever", "strategy": "fastest"}
    told = (await admin.put(f"/api/fallback/routing{query}", json=body)).json()

    assert chain(chain_told)[0] == ("a/three", True)
    assert (told["combo"], told["strategy"]) == ("clever", "fastest")
    assert chain(await admin.get("/api/fallback"))[0] == ("a/one", True)


@pytest.mark.parametrize("path", ["", "/routing"])
@pytest.mark.parametrize("combo", ["none", "auto", 7, ["clever"]])
async def test_combo_of_the_body_that_is_none_or_another_is_refused(
    admin: httpx.AsyncClient, path: str, combo: Any
) -> None:
    body = {"combo": combo, "items": ["a/two"], "strategy": "fastest"}
    if path:
        del body["items"]

    answer = await admin.put(f"/api/fallback{path}?combo=clever", json=body)

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "combo")
    assert (await admin.get("/api/config")).json()["changes"] == {}
