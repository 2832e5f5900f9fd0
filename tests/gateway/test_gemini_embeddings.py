"""`embedContent` and `batchEmbedContents` through the one loop, over both dialects."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.fakes.gateway import Gateway, provider
from tests.fakes.gemini_upstream import GeminiUpstream
from tests.gateway.conftest import Start
from tests.gateway.test_embedding_answers import packed, vectors
from tests.gateway.test_gemini_surface import send

OWN = {"dimensions": 2}
USAGE = {"promptTokenCount": 3, "totalTokenCount": 3}


@pytest.fixture
async def upstream() -> AsyncIterator[GeminiUpstream]:
    """An upstream that answers any path as it is told."""
    async with GeminiUpstream() as server:
        yield server


@pytest.fixture
async def gateway(start: Start, upstream: GeminiUpstream) -> Gateway:
    return await start(
        providers={
            "a": provider(f"{upstream.base_url}/v1"),
            "g": {"dialect": "gemini", "base_url": f"{upstream.base_url}/v1beta"},
        },
        keys=[{"id": f"{name}1", "provider": name, "secret": f"secret-{name}"} for name in "ag"],
        models=[
            {"provider": "g", "model": "small", "embedding": {**OWN, "family": "f"}},
            {"provider": "a", "model": "small", "embedding": {**OWN, "family": "f"}},
            {"provider": "a", "model": "chats"},
        ],
    )


async def call(
    http: aiohttp.ClientSession, gateway: Gateway, model: str, method: str, **body: Any
) -> tuple[aiohttp.ClientResponse, Any]:
    url = f"{gateway.base_url}/v1beta/models/{model}:{method}"
    response, got = await send(http, url, body)
    return response, msgspec.json.decode(got)


def one(text: str, **more: Any) -> dict[str, Any]:
    return {"content": {"parts": [{"text": text}]}, **more}


async def test_a_batch_of_the_same_dialect_loses_nothing_either_way(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    answer = {"embeddings": [{"values": [1.0, 2.0], "new": 1}], "usageMetadata": USAGE, "more": 1}
    upstream.script = [answer]
    asked = one("hi", taskType="CLUSTERING", title="t", outputDimensionality=2)

    response, got = await call(http, gateway, "g/small", "batchEmbedContents", requests=[asked])

    assert (response.status, got) == (200, answer)
    assert upstream.bodies[-1] == {"requests": [{**asked, "model": "models/small"}]}
    assert "X-Gw-Warnings" not in response.headers


async def test_a_single_content_gets_a_single_vector(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.script = [{"embeddings": [{"values": [1.0, 2.0]}], "usageMetadata": USAGE}]

    response, got = await call(http, gateway, "g/small", "embedContent", **one("hi"))

    assert response.status == 200
    assert got == {"embedding": {"values": [1.0, 2.0]}, "usageMetadata": USAGE}


@pytest.mark.parametrize("vector", [[0.5, 1.0], packed(0.5, 1.0)])
async def test_another_dialect_gets_texts_and_what_it_has_no_words_for_is_named(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession, vector: Any
) -> None:
    upstream.script = [vectors(vector, [2.0, 3.0])]
    asked = [one(text, taskType="CLUSTERING", outputDimensionality=2) for text in ("a", "b")]

    response, got = await call(http, gateway, "a/small", "batchEmbedContents", requests=asked)

    assert response.status == 200
    assert got["embeddings"] == [{"values": [0.5, 1.0]}, {"values": [2.0, 3.0]}]
    assert got["usageMetadata"] == USAGE
    assert upstream.bodies[-1] == {"model": "small", "input": ["a", "b"], "dimensions": 2}
    assert response.headers["X-Gw-Warnings"] == "dropped requests[].taskType"


async def test_routes_of_a_family_stand_in_for_each_other(
    gateway: Gateway, upstream: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.script = [vectors([0.5, 1.0])]  # no vectors in the words of the first

    response, got = await call(http, gateway, "f", "embedContent", **one("hi"))

    assert response.headers["X-Routed-Via"] == "a/small"
    assert response.headers["X-Fallback-Attempts"] == "1"
    assert got["embedding"] == {"values": [0.5, 1.0]}


@pytest.mark.parametrize(
    ("model", "status", "reason"),
    [("a/chats", 400, "not_an_embedding_model"), ("nobody", 404, "model_not_found")],
)
async def test_errors_have_the_dialects_shape(
    gateway: Gateway, http: aiohttp.ClientSession, model: str, status: int, reason: str
) -> None:
    response, got = await call(http, gateway, model, "embedContent", **one("hi"))

    assert response.status == got["error"]["code"] == status
    assert got["error"]["reason"] == reason


async def test_models_are_listed_with_the_calls_they_take(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    async with http.get(f"{gateway.base_url}/v1beta/models") as response:
        listed = {model["name"]: model for model in (await response.json())["models"]}
    async with http.get(f"{gateway.base_url}/v1beta/models/f") as response:
        alone = await response.json()

    methods = ["embedContent", "batchEmbedContents"]
    assert listed["models/f"]["supportedGenerationMethods"] == methods
    assert "generateContent" in listed["models/a/chats"]["supportedGenerationMethods"]
    assert alone == listed["models/f"]
