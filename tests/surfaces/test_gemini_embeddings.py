"""Requests for embeddings in Gemini's form: what is read of them, and what is refused where."""

from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.embedding import EmbeddingForm
from cluster_gw.canonical.events import Usage
from cluster_gw.canonical.request import ChatRequest, Wishes
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.gemini_embeddings import BatchEmbedContents, EmbedContent
from cluster_gw.wire.json_codec import raw

ONE = EmbedContent("m")
BATCH = BatchEmbedContents("models/m")


def content(*texts: str) -> dict[str, Any]:
    return {"parts": [{"text": text} for text in texts]}


def decoded(surface: EmbedContent, **body: Any) -> ChatRequest:
    request = surface.decode_request(msgspec.json.encode(body))
    assert isinstance(request, ChatRequest), request
    return request


def refused(surface: EmbedContent, body: Any) -> ErrorBody:
    error = surface.decode_request(msgspec.json.encode(body))
    assert isinstance(error, ErrorBody)
    return error


def test_one_content_becomes_a_request_of_the_one_form() -> None:
    request = decoded(ONE, content=content("a", "bc"), outputDimensionality=8, taskType="QA")

    asked = request.embedding
    assert asked is not None
    assert {name: bytes(value) for name, value in request.fields.items()} == {
        "model": b'"m"',
        "input": b'["a\\nbc"]',
        "dimensions": b"8",
    }
    assert (asked.count, asked.dimensions, asked.form) == (1, 8, EmbeddingForm.GEMINI_SINGLE)
    assert asked.unsaid == ("taskType",)
    assert request.input_characters == (4,)


def test_a_batch_keeps_each_request_as_it_is() -> None:
    given = [{"model": "models/m", "content": content(text), "taskType": "QA"} for text in "ab"]
    request = decoded(BATCH, requests=given, provider={"order": ["x"]})

    asked = request.embedding
    assert asked is not None
    assert [msgspec.json.decode(msgspec.json.encode(one)) for one in asked.contents] == given
    assert asked.form is EmbeddingForm.GEMINI_BATCH
    assert asked.unsaid == ("requests[].taskType",)
    assert request.wishes == Wishes(order=("x",))


def test_names_with_underscores_are_understood() -> None:
    one = {"content": content("a"), "output_dimensionality": 8, "task_type": "QA"}

    for request in (decoded(ONE, **one), decoded(BATCH, requests=[one])):
        assert request.embedding is not None
        assert request.embedding.dimensions == 8
        assert [set(item) for item in request.embedding.contents] == [
            {"content", "outputDimensionality", "taskType"}
        ]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "content"),
        ({"content": 1}, "content"),
        ({"content": {"parts": []}}, "content"),
        ({"content": {"parts": [{"text": ""}]}}, "content"),
        ({"content": {"parts": [{"text": 1}]}}, "content.parts[0].text"),
        ({"content": {"parts": [{"text": "a"}, {"inlineData": {}}]}}, "content.parts[1]"),
        ({"content": content("a"), "outputDimensionality": 0}, "outputDimensionality"),
        ({"content": content("a"), "model": "models/n"}, "model"),
        ({"content": content("a"), "models": ["m"]}, "models"),
        ({"content": content("a"), "provider": 1}, "provider"),
        ([], None),
    ],
)
def test_what_cannot_be_served_is_refused_at_its_place(body: Any, param: str | None) -> None:
    assert refused(ONE, body).param == param


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "requests"),
        ({"requests": []}, "requests"),
        ({"requests": [{"content": content("a")}, {"content": content()}]}, "requests[1].content"),
        ({"requests": [{"content": content("a"), "model": "n"}]}, "requests[0].model"),
        (
            {"requests": [{"content": content("a"), "outputDimensionality": n} for n in (1, 2)]},
            "requests[1].outputDimensionality",
        ),
        ({"requests": [{"content": content("a")}], "other": 1}, None),
    ],
)
def test_a_batch_is_refused_at_its_place(body: Any, param: str | None) -> None:
    assert refused(BATCH, body).param == param


def test_no_json_is_refused_as_such() -> None:
    for surface in (ONE, BATCH):
        error = surface.decode_request(b"{")
        assert isinstance(error, ErrorBody)
        assert error.code == "invalid_json"


def test_vectors_are_written_as_each_call_has_them() -> None:
    usage = Usage(prompt_tokens=3, total_tokens=3)
    told = {"promptTokenCount": 3, "totalTokenCount": 3}
    one = [raw([0.5, 1.0])]

    assert msgspec.json.decode(ONE.encode_vectors(one, "m", usage)) == {
        "embedding": {"values": [0.5, 1.0]},
        "usageMetadata": told,
    }
    assert msgspec.json.decode(BATCH.encode_vectors(one * 2, "m", usage)) == {
        "embeddings": [{"values": [0.5, 1.0]}] * 2,
        "usageMetadata": told,
    }
