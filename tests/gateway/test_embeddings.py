"""`POST /v1/embeddings` through the one loop: names, formats, failover, faults, limits."""

import base64
import hashlib
import json
import struct
from typing import Any

import aiohttp
import pytest

from cluster_gw.simulator.embeddings import expected_vector
from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway, provider
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_health import status

SMALL = {"family": "small", "dimensions": 16, "max_input_tokens": 100}
MODELS = [
    {"provider": "a", "model": "one"},
    {"provider": "a", "model": "small", "embedding": SMALL},
    {"provider": "b", "model": "org/small", "embedding": {**SMALL, "sizes": []}},
    {"provider": "b", "model": "big", "embedding": {}},
    {"provider": "b", "model": "off", "embedding": {}, "enabled": False},
]
COMBOS = [
    {"id": "auto", "family": "classic", "strategy": "priority"},
    {"id": "code", "family": "classic", "strategy": "priority", "members": ["a/one"]},
]


@pytest.fixture
async def gateway(start: Start, simulator: RunningSimulator) -> Gateway:
    far = provider(simulator.base_url)
    key = {"id": "app", "key_sha256": hashlib.sha256(b"k-app").hexdigest()}
    narrow = {"id": "narrow", "key_sha256": hashlib.sha256(b"k-narrow").hexdigest()}
    return await start(
        providers={"a": far, "b": far},
        models=MODELS,
        combos=COMBOS,
        auth={"mode": "keys"},
        clients=[{**key, "detail": True}, {**narrow, "combos": ["code", "big"], "detail": True}],
    )


async def embed(
    http: aiohttp.ClientSession, gateway: Gateway, *, key: str = "k-app", **body: Any
) -> tuple[aiohttp.ClientResponse, Any]:
    """The response and its document."""
    wanted = {"model": "small", "input": "hello", **body}
    headers = {"x-api-key": key, "x-gw-detail": "1"}
    url = f"{gateway.base_url}/v1/embeddings"
    async with http.post(url, json=wanted, headers=headers) as response:
        return response, json.loads(await response.read())


def unpacked(text: str) -> list[float]:
    """The numbers of a vector in base64."""
    data = base64.b64decode(text)
    return list(struct.unpack(f"<{len(data) // 4}f", data))


async def test_vectors_come_in_the_order_of_their_inputs(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    response, answer = await embed(http, gateway, input=["one", "two", "three"])

    assert response.status == 200
    assert response.headers["X-Routed-Via"] == "a/small"
    assert [item["index"] for item in answer["data"]] == [0, 1, 2]
    assert [item["embedding"] for item in answer["data"]] == [
        list(expected_vector(text, 16)) for text in ("one", "two", "three")
    ]
    assert answer["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
    assert answer["strategy"] == "priority"


@pytest.mark.parametrize("given", ["a text", ["a", "b"], [1, 2, 3], [[1, 2], [3]]])
async def test_every_kind_of_input_is_served(
    gateway: Gateway, http: aiohttp.ClientSession, given: Any
) -> None:
    response, answer = await embed(http, gateway, input=given, encoding_format="base64")

    count = len(given) if isinstance(given, list) and not isinstance(given[0], int) else 1
    assert response.status == 200
    assert [len(unpacked(item["embedding"])) for item in answer["data"]] == [16] * count


async def test_a_failed_route_is_followed_by_one_of_its_family_and_never_by_another(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    once = steer(id="once", fault=status(500), times=1)
    response, answer = await embed(http, gateway, input=once)

    assert response.status == 200
    assert response.headers["X-Routed-Via"] == "b/org/small"
    assert [attempt["model"] for attempt in answer["attempts"]] == ["small", "org/small"]

    always = steer(id="always", fault=status(500), times=9)
    response, answer = await embed(http, gateway, input=always)

    assert response.status == 502
    assert [a["model"] for a in answer["error"]["attempts"]] == ["small", "org/small"]


async def test_usage_is_settled_as_reported(gateway: Gateway, http: aiohttp.ClientSession) -> None:
    await embed(http, gateway, input="x" * 40)

    (line,) = [line for line in gateway.events() if line["event"] == "request.finished"]
    assert (line["combo"], line["route"], line["status"]) == ("small", "a/small", 200)
    assert (line["tokens"], line["tokens_source"]) == (10, "reported")


@pytest.mark.parametrize(
    ("model", "via"),
    [
        ("small", ["a/small", "b/org/small"]),
        ("org/small", ["a/small", "b/org/small"]),
        ("a/small", ["a/small"]),
        ("b:org/small", ["b/org/small"]),
        ("big", ["b/big"]),
    ],
)
async def test_a_name_stands_for_routes_of_one_family(
    gateway: Gateway, http: aiohttp.ClientSession, model: str, via: list[str]
) -> None:
    _, answer = await embed(http, gateway, model=model)

    assert [place["route"] for place in answer["ranking"]] == via, answer


@pytest.mark.parametrize(
    ("model", "expected", "code"),
    [
        ("nobody", 404, "model_not_found"),
        ("off", 404, "model_not_found"),
        ("a/one", 400, "not_an_embedding_model"),
        ("auto", 400, "not_an_embedding_model"),
        ("one", 400, "not_an_embedding_model"),
        (None, 400, "invalid_request"),
    ],
)
async def test_embeddings_have_no_default_and_no_chat_model_makes_them(
    gateway: Gateway, http: aiohttp.ClientSession, model: Any, expected: int, code: str
) -> None:
    response, answer = await embed(http, gateway, model=model)

    assert (response.status, answer["error"]["code"]) == (expected, code)
    assert answer["error"]["param"] == "model"


@pytest.mark.parametrize("model", ["small", "a/small", "org/small", "b:big", "off"])
async def test_a_chat_is_not_asked_of_an_embedding_model(
    gateway: Gateway, http: aiohttp.ClientSession, model: str
) -> None:
    response, body = await post(
        http, gateway.base_url, {**chat(), "model": model}, x_api_key="k-app"
    )

    assert response.status == 400
    assert json.loads(body)["error"]["code"] == "embedding_model"


async def test_no_combo_or_alias_chats_with_an_embedding_model(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    for model in ("auto", "auto:smart"):
        response, body = await post(
            http, gateway.base_url, {**chat(), "model": model}, x_api_key="k-app", X_Gw_Detail="1"
        )

        answer = json.loads(body)
        assert response.status == 200
        assert [place["route"] for place in answer["ranking"]] == ["a/one"]
        assert answer["skipped"] == []


async def test_a_client_may_use_the_families_of_its_scope(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    allowed, _ = await embed(http, gateway, key="k-narrow", model="big")
    refused, answer = await embed(http, gateway, key="k-narrow", model="small")

    assert allowed.status == 200
    assert (refused.status, answer["error"]["code"]) == (403, "model_not_allowed")


async def test_a_length_that_a_route_cannot_give_excludes_it(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    response, answer = await embed(http, gateway, dimensions=8)

    assert response.status == 200
    assert len(answer["data"][0]["embedding"]) == 8
    assert [(skip["route"], skip["code"]) for skip in answer["skipped"]] == [
        ("b/org/small", "no_dimensions")
    ]

    response, answer = await embed(http, gateway, dimensions=64)
    assert (response.status, answer["error"]["code"]) == (422, "unsupported_capability")
    assert {skip["code"] for skip in answer["error"]["skipped"]} == {"no_dimensions"}


async def test_an_input_that_is_too_long_is_told_before_anyone_is_asked(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    fits, _ = await embed(http, gateway, input=["x" * 400] * 8)
    response, answer = await embed(http, gateway, input=["short", "x" * 404])

    assert fits.status == 200
    assert (response.status, answer["error"]["code"]) == (413, "context_length_exceeded")


async def test_wishes_for_providers_hold(gateway: Gateway, http: aiohttp.ClientSession) -> None:
    response, _ = await embed(http, gateway, provider={"order": ["b"]})
    refused, answer = await embed(http, gateway, provider={"only": ["nobody"]})

    assert response.headers["X-Routed-Via"] == "b/org/small"
    assert (refused.status, answer["error"]["code"]) == (404, "no_allowed_provider")


async def test_models_are_listed_as_what_they_are(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    headers = {"x-api-key": "k-app"}
    async with http.get(f"{gateway.base_url}/v1/models", headers=headers) as response:
        listed = {model["id"]: model for model in json.loads(await response.read())["data"]}

    made = {name for name, model in listed.items() if model.get("type") == "embedding"}
    assert made == {"small", "big", "a/small", "b/org/small", "b/big"}
    assert (listed["small"]["dimensions"], listed["small"]["available"]) == (16, True)
    assert "type" not in listed["a/one"]


async def test_an_api_that_serves_no_embeddings_lists_none(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    headers, url = (
        {"x-api-key": "k-app", "anthropic-version": "2023-06-01"},
        f"{gateway.base_url}/v1/models",
    )
    async with http.get(url, headers=headers) as response:
        listed = await response.read()
    async with http.get(f"{url}/small", headers=headers) as response:
        assert response.status == 404

    assert b"a/one" in listed
    assert b"small" not in listed


async def test_an_explanation_tells_of_embeddings(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    async with gateway.admin() as admin:
        answer = await admin.post(
            "/api/explain",
            json={"surface": "embeddings", "request": {"model": "small", "input": "hi"}},
        )

    assert [place["route"] for place in answer.json()["ranking"]] == ["a/small", "b/org/small"]
