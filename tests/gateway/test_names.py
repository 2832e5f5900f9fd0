"""What clients may send as `model`, and what they are told of names: through HTTP."""

import hashlib
import json
from typing import Any

import aiohttp
import pytest

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway, provider
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_health import status

PRIORITY = {"family": "classic", "strategy": "priority"}
COMBOS = [
    {"id": "auto", **PRIORITY, "members": ["a/one", "b/two"]},
    {"id": "code", **PRIORITY, "members": ["b/two"]},
    {"id": "Mine", **PRIORITY, "profile": True, "members": ["b/two", "a/one"]},
    {"id": "none", "profile": True, "members": [{"route": "a/one", "enabled": False}]},
]
MODELS = [
    {"provider": "a", "model": "one", "name": "GLM 4.7 (A)", "tier": "Frontier"},
    {"provider": "b", "model": "two", "name": "GLM-4.7 free", "tier": "Small"},
    {"provider": "b", "model": "off", "enabled": False},
    {"provider": "c", "model": "bare"},
]


@pytest.fixture
async def names(start: Start, simulator: RunningSimulator) -> Gateway:
    far = provider(simulator.base_url)
    key = {"id": "app", "key_sha256": hashlib.sha256(b"k-app").hexdigest()}
    narrow = {"id": "narrow", "key_sha256": hashlib.sha256(b"k-narrow").hexdigest()}
    return await start(
        providers={"a": far, "b": far, "c": far},
        models=MODELS,
        combos=COMBOS,
        auth={"mode": "keys"},
        clients=[{**key, "detail": True}, {**narrow, "combos": ["code"], "detail": True}],
    )


async def ask(
    http: aiohttp.ClientSession, gateway: Gateway, model: Any, *, key: str = "k-app", **fields: Any
) -> tuple[int, dict[str, Any]]:
    body = {**chat(**fields), "model": model}
    response, answer = await post(http, gateway.base_url, body, x_api_key=key, X_Gw_Detail="1")
    return response.status, json.loads(answer)


async def via(
    http: aiohttp.ClientSession, gateway: Gateway, model: Any, *, key: str = "k-app", **fields: Any
) -> list[str]:
    """The routes of the ranking, in order."""
    got, answer = await ask(http, gateway, model, key=key, **fields)
    assert got == 200, answer
    return [place["route"] for place in answer["ranking"]]


async def test_each_kind_of_name_leads_where_it_says(
    names: Gateway, http: aiohttp.ClientSession
) -> None:
    assert await via(http, names, None) == ["a/one", "b/two"]
    assert await via(http, names, "code") == ["b/two"]
    assert (
        await via(http, names, "auto:mine")
        == await via(http, names, "Mine")
        == [
            "b/two",
            "a/one",
        ]
    )
    assert await via(http, names, "b:two") == await via(http, names, "b/two") == ["b/two"]
    assert await via(http, names, "glm-4.7") == await via(http, names, "two") == ["a/one", "b/two"]


async def test_an_alias_ranks_all_models_by_its_own_weights(
    names: Gateway, http: aiohttp.ClientSession
) -> None:
    _, smart = await ask(http, names, "auto:Smart")
    _, cheap = await ask(http, names, "auto:price")

    assert (smart["strategy"], cheap["strategy"]) == ("smartest", "balanced")
    assert sorted(place["route"] for place in smart["ranking"]) == ["a/one", "b/two"]
    assert "c/bare" in [skip["route"] for skip in smart["skipped"]]
    weights = [factor["weight"] for factor in smart["ranking"][0]["factors"]]
    assert weights == pytest.approx([0.35, 0.10, 0.55])


async def test_a_group_fails_over_inside_and_never_to_another_model(
    names: Gateway, http: aiohttp.ClientSession
) -> None:
    failing = steer(id="f", fault=status(500), times=9)

    got, answer = await ask(http, names, "glm-4.7", text=failing)

    assert got == 502
    assert [attempt["model"] for attempt in answer["error"]["attempts"]] == ["one", "two"]


@pytest.mark.parametrize(
    ("model", "expected", "code"),
    [
        ("nobody", 404, "model_not_found"),
        ("auto:nobody", 404, "model_not_found"),
        ("a/none", 404, "model_not_found"),
        ("b/off", 404, "model_not_found"),
        ("none", 400, "empty_profile"),
        ("auto:NONE", 400, "empty_profile"),
        ("c/bare", 503, "no_eligible_providers"),
        ("bare", 503, "no_eligible_providers"),
    ],
)
async def test_each_name_that_cannot_serve_has_its_error(
    names: Gateway, http: aiohttp.ClientSession, model: str, expected: int, code: str
) -> None:
    got, answer = await ask(http, names, model)

    assert (got, answer["error"]["code"]) == (expected, code)
    if model == "b/off":
        assert "disabled" in answer["error"]["message"]


async def test_several_models_and_providers_of_the_body_are_followed_and_not_sent_on(
    names: Gateway, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    assert await via(http, names, "code", models=["a/one"]) == ["b/two", "a/one"]
    assert await via(http, names, None, models=["a/one", "code"]) == ["a/one", "b/two"]
    assert await via(http, names, "auto", provider={"order": ["b"]}) == ["b/two", "a/one"]
    assert await via(http, names, "auto", provider={"ignore": ["a"]}) == ["b/two"]

    _, only = await ask(http, names, "auto", provider={"only": ["B"]})
    assert [(s["route"], s["code"]) for s in only["skipped"]] == [("a/one", "not_wanted")]


@pytest.mark.parametrize(
    ("fields", "expected", "code", "param"),
    [
        ({"models": ["nobody"]}, 404, "model_not_found", "models[0]"),
        ({"models": ["auto:none"]}, 400, "empty_profile", "models[0]"),
        ({"provider": {"only": ["zeus"]}}, 404, "no_allowed_provider", "provider"),
        ({"models": "a/one"}, 400, "invalid_request", "models"),
        ({"provider": []}, 400, "invalid_request", "provider"),
    ],
)
async def test_wishes_that_cannot_be_followed_name_their_place(
    names: Gateway,
    http: aiohttp.ClientSession,
    fields: dict[str, Any],
    expected: int,
    code: str,
    param: str,
) -> None:
    got, answer = await ask(http, names, "auto", **fields)

    error = answer["error"]
    assert (got, error["code"], error["param"]) == (expected, code, param)


async def test_a_request_that_is_left_with_incapable_models_is_told_so(
    start: Start, http: aiohttp.ClientSession
) -> None:
    models = [
        {"provider": "a", "model": "one", "tools": False},
        {"provider": "b", "model": "two"},
    ]
    gateway = await start(models=models)
    tools = [{"type": "function", "function": {"name": "f"}}]
    body = chat(tools=tools, provider={"ignore": ["b"]})

    response, answer = await post(http, gateway.base_url, body)

    assert response.status == 422
    assert "left out by the request" in json.loads(answer)["error"]["message"]


async def test_a_narrow_client_gets_of_every_name_what_its_combos_hold(
    names: Gateway, http: aiohttp.ClientSession
) -> None:
    for model in ("code", "b/two", "glm-4.7", "auto:fast"):
        assert await via(http, names, model, key="k-narrow") == ["b/two"]
    for model in ("auto", "a/one", "Mine", "one"):
        got, answer = await ask(http, names, model, key="k-narrow")
        expected = (200, None) if model == "one" else (403, "model_not_allowed")
        assert (got, answer.get("error", {}).get("code")) == expected
    got, answer = await ask(http, names, "code", key="k-narrow", models=["a/one"])
    assert (got, answer["error"]["param"]) == (403, "models[0]")


async def listing(
    http: aiohttp.ClientSession, gateway: Gateway, path: str = "", key: str = "k-app"
) -> Any:
    url = f"{gateway.base_url}/v1/models{path}"
    async with http.get(url, headers={"x-api-key": key}) as response:
        return await response.json()


async def test_the_listing_has_what_a_client_may_name(
    names: Gateway, http: aiohttp.ClientSession
) -> None:
    listed = {entry["id"]: entry for entry in (await listing(http, names))["data"]}

    assert list(listed) == [
        *("auto", "code", "Mine", "none", "auto:Mine", "auto:none"),
        *("auto:smart", "auto:fast", "auto:cheap", "auto:reliable", "auto:balanced"),
        "glm-4.7",
        *("a/one", "b/two", "b/off", "c/bare"),
    ]
    reasons = {name: entry.get("unavailable_reason") for name, entry in listed.items()}
    assert {name for name, reason in reasons.items() if reason == "disabled"} == {
        "none",
        "auto:none",
        "b/off",
    }
    assert [name for name, reason in reasons.items() if reason == "no_key"] == ["c/bare"]
    assert listed["glm-4.7"]["name"] == "GLM 4.7"

    usable = [entry["id"] for entry in (await listing(http, names, "?available=true"))["data"]]
    assert usable == [name for name, reason in reasons.items() if reason is None]


async def test_the_listing_tells_what_everybody_behind_a_name_can_do(
    start: Start, http: aiohttp.ClientSession
) -> None:
    models = [
        {"provider": "a", "model": "one", "context_window": 1000},
        {"provider": "b", "model": "two", "context_window": 4000, "tools": False},
    ]
    gateway = await start(models=models)

    listed = {entry["id"]: entry for entry in (await listing(http, gateway))["data"]}

    assert listed["auto"]["supported_parameters"] == ["response_format"]
    assert listed["a/one"]["supported_parameters"] == ["tools", "tool_choice", "response_format"]
    assert [listed["auto"][name] for name in ("context_window", "context_length")] == [4000] * 2


async def test_a_narrow_client_is_shown_its_own_names_only(
    names: Gateway, http: aiohttp.ClientSession
) -> None:
    listed = (await listing(http, names, key="k-narrow"))["data"]

    assert [entry["id"] for entry in listed] == ["code", "glm-4.7", "b/two"]
    assert (await listing(http, names, "/a/one", key="k-narrow"))["error"]["code"] == (
        "model_not_found"
    )


@pytest.mark.parametrize("name", ["auto:mine", "b:two", "two", "auto:speed"])
async def test_a_name_that_is_not_listed_can_be_shown(
    names: Gateway, http: aiohttp.ClientSession, name: str
) -> None:
    shown = await listing(http, names, f"/{name}")

    assert (shown["id"], shown["available"]) == (name, True)


async def test_a_window_that_may_be_too_small_is_used_last(
    start: Start, http: aiohttp.ClientSession
) -> None:
    models = [
        {"provider": "a", "model": "one", "context_window": 1100},
        {"provider": "b", "model": "two", "context_window": 1125},
    ]
    gateway = await start(models=models)

    _, body = await post(http, gateway.base_url, chat("x" * 400), X_Gw_Detail="1")

    last = json.loads(body)["ranking"][-1]
    assert last["route"] == "a/one"
    assert last["reasons"][-1] == "context 1100 < 1125 with a margin"


async def test_structured_output_is_not_asked_of_a_preset_that_drops_it(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    provider_of = {"preset": "kilo", "base_url": simulator.base_url}
    gateway = await start(providers={"a": provider_of, "b": provider(simulator.base_url)})
    body = chat(response_format={"type": "json_object"})

    response, answer = await post(http, gateway.base_url, body, X_Gw_Detail="1")

    assert response.headers["X-Routed-Via"] == "b/two"
    skips = [(s["route"], s["code"]) for s in json.loads(answer)["skipped"]]
    assert skips == [("a/one", "no_format")]


@pytest.mark.parametrize(("sort", "first"), [("price", "b/two"), ({"by": "price"}, "b/two")])
async def test_a_request_may_ask_for_the_cheapest(
    start: Start, http: aiohttp.ClientSession, sort: Any, first: str
) -> None:
    gateway = await start(
        models=[
            {"provider": "a", "model": "one", "price": {"input": 5, "output": 15}},
            {"provider": "b", "model": "two", "price": {"input": 1, "output": 2}},
        ]
    )

    plain, _ = await post(http, gateway.base_url, chat())
    sorted_, body = await post(
        http, gateway.base_url, chat(provider={"sort": sort}), X_Gw_Detail="1"
    )

    assert plain.headers["X-Routed-Via"] == "a/one"
    assert sorted_.headers["X-Routed-Via"] == first
    assert "sorted by price" in str(json.loads(body)["ranking"][0]["reasons"])
