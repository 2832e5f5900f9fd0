"""Requests for embeddings: what is read of them, and what is refused by its place."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.embedding import EmbeddingAsk
from cluster_gw.canonical.request import ChatRequest, Wishes
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.embeddings import MAX_VALUES, Embeddings, holds_too_much

SURFACE = Embeddings()


def decoded(**members: Any) -> ChatRequest | ErrorBody:
    return SURFACE.decode_request(msgspec.json.encode({"model": "m", "input": "hi", **members}))


@pytest.mark.parametrize(
    ("given", "characters", "asked"),
    [
        ("text", (4,), EmbeddingAsk(count=1)),
        (["a", "bcd"], (1, 3), EmbeddingAsk(count=2)),
        ([1, 2, 3], (), EmbeddingAsk(count=1, token_counts=(3,))),
        ([[1, 2], [3]], (), EmbeddingAsk(count=2, token_counts=(2, 1))),
    ],
)
def test_every_form_of_input_is_counted(
    given: Any, characters: tuple[int, ...], asked: EmbeddingAsk
) -> None:
    request = decoded(input=given)

    assert isinstance(request, ChatRequest)
    assert request.input_characters == characters
    assert request.embedding == asked
    assert not request.stream


def test_members_travel_on_as_they_are_but_for_wishes() -> None:
    request = decoded(
        dimensions=8, encoding_format="base64", user="u", custom=1, provider={"order": ["x"]}
    )

    assert isinstance(request, ChatRequest)
    assert request.embedding == EmbeddingAsk(count=1, dimensions=8, is_base64=True)
    assert request.wishes == Wishes(order=("x",))
    assert request.user == "u"
    names = ["model", "input", "dimensions", "encoding_format", "user", "custom"]
    assert list(request.fields) == names


@pytest.mark.parametrize(
    ("members", "param"),
    [
        ({"input": None}, "input"),
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": ["a", ""]}, "input[1]"),
        ({"input": [[]]}, "input[0]"),
        ({"input": [[1], []]}, "input[1]"),
        ({"input": ["a", 1]}, "input[1]"),
        ({"input": [1, "a"]}, "input[1]"),
        ({"input": ["a", [1]]}, "input[1]"),
        ({"input": [1.5]}, "input[0]"),
        ({"input": [["a"]]}, "input[0][0]"),
        ({"input": {"text": "a"}}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"model": None}, "model"),
        ({"model": ""}, "model"),
        ({"model": 5}, "model"),
        ({"models": ["a"]}, "models"),
        ({"dimensions": 0}, "dimensions"),
        ({"dimensions": "8"}, "dimensions"),
        ({"encoding_format": "hex"}, "encoding_format"),
        ({"provider": {"only": "x"}}, "provider.only"),
    ],
)
def test_what_is_wrong_is_refused_by_its_place(members: dict[str, Any], param: str) -> None:
    refused = decoded(**members)

    assert isinstance(refused, ErrorBody)
    assert (refused.status, refused.code, refused.param) == (400, "invalid_request", param)
    assert refused.message.startswith(param)


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b'"text"', b'{"input":"\xff"}'])
def test_what_is_no_object_is_no_request(body: bytes) -> None:
    refused = SURFACE.decode_request(body)

    assert isinstance(refused, ErrorBody)
    assert (refused.status, refused.code) == (400, "invalid_json")


def test_a_crowded_body_is_refused_without_reading_it() -> None:
    numbers = b'{"model":"m","input":[' + b"1," * MAX_VALUES + b"1,1]}"
    text = msgspec.json.encode({"model": "m", "input": "," * (MAX_VALUES + 2)})

    refused = SURFACE.decode_request(numbers)

    assert isinstance(refused, ErrorBody)
    assert refused.param == "input"
    assert not holds_too_much(text)
