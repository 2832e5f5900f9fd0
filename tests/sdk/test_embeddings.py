"""Embeddings by the official Python SDK, which asks for base64 unless told otherwise."""

from typing import Any

import openai
import pytest

from cluster_gw.simulator.embeddings import expected_vector
from tests.sdk.calls import Client, awaited, steer
from tests.sdk.conftest import Simulator

pytestmark = pytest.mark.sdk


async def embed(client: Client, given: Any, **options: Any) -> Any:
    options = {"model": "small", "input": given, **options}
    return await awaited(client.embeddings.create(**options))


@pytest.mark.parametrize("options", [{}, {"encoding_format": "float"}])
async def test_vectors_come_whole_and_in_order(client: Client, options: dict[str, Any]) -> None:
    answer = await embed(client, ["one", "two"], **options)

    assert [item.index for item in answer.data] == [0, 1]
    for item, text in zip(answer.data, ("one", "two"), strict=True):
        assert item.embedding == pytest.approx(expected_vector(text, 16), abs=1e-6)
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (2, 2)


@pytest.mark.parametrize("given", ["text", [1, 2, 3], [[1], [2, 3]]])
async def test_every_kind_of_input_is_taken(client: Client, given: Any) -> None:
    answer = await embed(client, given, dimensions=4)

    assert {len(item.embedding) for item in answer.data} == {4}


async def test_a_failed_route_is_followed_by_another_of_its_family(
    client: Client, simulator: Simulator, request: pytest.FixtureRequest
) -> None:
    name = request.node.name
    answer = await embed(client, steer(id=name, fault={"kind": "status", "code": 500}, times=1))

    assert len(answer.data) == 1
    assert simulator.calls(name) == 2


@pytest.mark.parametrize(
    ("options", "kind", "code"),
    [
        ({"model": "auto"}, openai.BadRequestError, "not_an_embedding_model"),
        ({"model": "nobody"}, openai.NotFoundError, "model_not_found"),
        ({"input": ""}, openai.BadRequestError, "invalid_request"),
        (
            {"model": "vectors/small", "dimensions": 64},
            openai.UnprocessableEntityError,
            "unsupported_capability",
        ),
    ],
)
async def test_errors_are_the_sdks_own_classes(
    client: Client, options: dict[str, Any], kind: type[openai.APIStatusError], code: str
) -> None:
    with pytest.raises(kind) as caught:
        await embed(client, "hi", **options)

    assert caught.value.code == code


async def test_a_chat_of_an_embedding_model_is_a_bad_request(client: Client) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await awaited(
            client.chat.completions.create(
                model="small", messages=[{"role": "user", "content": "hi"}]
            )
        )

    assert caught.value.code == "embedding_model"
