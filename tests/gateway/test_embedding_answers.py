"""What odd upstreams of embeddings answer, and what their client gets of it."""

import base64
import struct
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import pytest

from tests.fakes.gateway import Gateway, provider
from tests.fakes.gemini_upstream import GeminiUpstream
from tests.gateway.conftest import Start
from tests.gateway.test_embeddings import embed, unpacked

OWN = {"family": "f", "dimensions": 2}


@pytest.fixture
async def odd() -> AsyncIterator[GeminiUpstream]:
    """An upstream that answers any path as it is told."""
    async with GeminiUpstream() as upstream:
        yield upstream


@pytest.fixture
async def next_one() -> AsyncIterator[GeminiUpstream]:
    async with GeminiUpstream() as upstream:
        upstream.script = [vectors([9.0, 9.0])]
        yield upstream


@pytest.fixture
async def gateway(start: Start, odd: GeminiUpstream, next_one: GeminiUpstream) -> Gateway:
    return await start(
        providers={
            "a": provider(f"{odd.base_url}/v1"),
            "b": provider(f"{next_one.base_url}/v1"),
            "g": {"dialect": "gemini", "base_url": f"{odd.base_url}/v1beta"},
        },
        keys=[{"id": f"{name}1", "provider": name, "secret": f"secret-{name}"} for name in "abg"],
        models=[
            {"provider": "a", "model": "small", "embedding": OWN},
            {"provider": "b", "model": "small", "embedding": OWN},
            {"provider": "g", "model": "small", "embedding": {**OWN, "family": "g"}},
        ],
    )


def packed(*numbers: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def vectors(*given: Any, order: Sequence[int | None] | None = None) -> dict[str, Any]:
    """OpenAI's document of some vectors."""
    places = range(len(given)) if order is None else order
    data = [{"index": place, "embedding": one} for place, one in zip(places, given, strict=True)]
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    return {"object": "list", "model": "up", "data": data, "usage": usage}


@pytest.mark.parametrize(
    ("answer", "asked", "expected"),
    [
        (vectors([0.5, 1.0]), "float", [0.5, 1.0]),
        (vectors(packed(0.5, 1.0)), "float", [0.5, 1.0]),
        (vectors([0.5, 1.0]), "base64", packed(0.5, 1.0)),
        (vectors(packed(0.5, 1.0)), "base64", packed(0.5, 1.0)),
        (vectors([0.5, 1.0]), None, [0.5, 1.0]),
    ],
)
async def test_a_client_gets_the_encoding_it_asked_for(
    gateway: Gateway,
    odd: GeminiUpstream,
    http: aiohttp.ClientSession,
    answer: Any,
    asked: str | None,
    expected: Any,
) -> None:
    odd.script = [answer]

    response, got = await embed(http, gateway, model="f", encoding_format=asked)

    assert response.status == 200
    assert [item["embedding"] for item in got["data"]] == [expected]
    assert got["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
    assert got["model"] == "up"


async def test_vectors_in_another_order_are_put_into_that_of_the_inputs(
    gateway: Gateway, odd: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    odd.script = [vectors([2.0, 2.0], [1.0, 1.0], order=[1, 0])]

    _, got = await embed(http, gateway, model="f", input=["one", "two"])

    assert [item["embedding"] for item in got["data"]] == [[1.0, 1.0], [2.0, 2.0]]
    assert [item["index"] for item in got["data"]] == [0, 1]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (vectors([1.0, 1.0], [1.0, 1.0]), "2 vectors for 1 inputs"),
        (vectors(), "holds no vectors"),
        (vectors([1.0]), "1 dimensions instead of 2"),
        (vectors([1.0, None]), "no array of numbers"),
        (vectors("%%%%%%%%%%%="), "cannot be read"),
        (vectors([1.0, 1.0], order=[1]), "have gaps"),
        ({"error": {"message": "overloaded", "type": "server_error"}}, "overloaded"),
        (b"<html>", "no JSON"),
    ],
)
async def test_an_answer_that_is_none_goes_on_to_the_next_route(
    gateway: Gateway, odd: GeminiUpstream, http: aiohttp.ClientSession, answer: Any, words: str
) -> None:
    odd.script = [answer]

    response, got = await embed(http, gateway, model="f")

    assert response.status == 200
    assert response.headers["X-Routed-Via"] == "b/small"
    assert got["data"][0]["embedding"] == [9.0, 9.0]
    assert words in got["attempts"][0]["message"]


async def test_gemini_is_asked_in_its_own_words_and_answers_in_openais(
    gateway: Gateway, odd: GeminiUpstream, http: aiohttp.ClientSession
) -> None:
    odd.script = [{"embeddings": [{"values": [0.25, 1]}, {"values": [1, 0]}]}]
    texts = ["one", "two"]

    response, got = await embed(
        http, gateway, model="g", input=texts, user="u", encoding_format="base64"
    )

    assert response.status == 200
    assert response.headers["X-Routed-Via"] == "g/small"
    assert response.headers["X-Gw-Warnings"] == "dropped user"
    assert odd.paths == ["/v1beta/models/small:batchEmbedContents"]
    assert odd.keys == ["secret-g"]
    assert [r["content"]["parts"][0]["text"] for r in odd.bodies[0]["requests"]] == texts
    assert [unpacked(item["embedding"]) for item in got["data"]] == [[0.25, 1.0], [1.0, 0.0]]
    assert (got["model"], got["object"]) == ("small", "list")
    assert got["usage"] == {"prompt_tokens": 2, "total_tokens": 2}


@pytest.mark.parametrize(
    ("given", "status", "code"),
    [([[1, 2]], 422, "no_token_input"), (["x"] * 101, 413, "context_window")],
)
async def test_what_gemini_cannot_take_is_not_sent(
    gateway: Gateway,
    odd: GeminiUpstream,
    http: aiohttp.ClientSession,
    given: Any,
    status: int,
    code: str,
) -> None:
    response, got = await embed(http, gateway, model="g", input=given)

    assert response.status == status
    assert [skip["code"] for skip in got["error"]["skipped"]] == [code]
    assert odd.bodies == []
