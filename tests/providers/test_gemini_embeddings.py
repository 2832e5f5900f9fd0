"""Gemini's embeddings: one request of a batch for each text, vectors in their order."""

import msgspec
import pytest

from cluster_gw.canonical.embedding import EmbeddingAsk, EmbeddingForm, EmbeddingModel
from cluster_gw.canonical.events import Completion, Usage
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.providers import provider_for
from cluster_gw.providers.gemini_embeddings import GeminiEmbeddingsProvider, lost_of
from cluster_gw.wire.json_codec import read_fields
from tests.pipeline.catalogs import make_route

PLAIN = GeminiEmbeddingsProvider(EmbeddingModel(family="f"))
JSON = "application/json"
ASKED = EmbeddingAsk(count=1)


def asked(body: bytes) -> ChatRequest:
    fields = read_fields(body)
    return ChatRequest(
        dialect=Dialect.OPENAI, model="f", stream=False, embedding=ASKED, fields=fields
    )


def test_a_route_of_that_dialect_has_this_codec_and_takes_openais_requests() -> None:
    route = make_route("m", embedding=EmbeddingModel(family="f"))

    codec = provider_for(msgspec.structs.replace(route, dialect=Dialect.GEMINI))

    assert isinstance(codec, GeminiEmbeddingsProvider)
    assert codec.dialect is Dialect.OPENAI


def test_the_model_stands_in_the_url_and_the_credential_in_a_header() -> None:
    assert PLAIN.url("http://h/v1beta", "m") == "http://h/v1beta/models/m:batchEmbedContents"
    assert ("x-goog-api-key", "secret") in PLAIN.request_headers("secret")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"input":"a"}', [{"model": "models/m", "content": {"parts": [{"text": "a"}]}}]),
        (
            b'{"input":["a","b"],"dimensions":8,"user":"u"}',
            [
                {
                    "model": "models/m",
                    "outputDimensionality": 8,
                    "content": {"parts": [{"text": text}]},
                }
                for text in "ab"
            ],
        ),
        (
            b'{"input":"a","dimensions":null}',
            [{"model": "models/m", "content": {"parts": [{"text": "a"}]}}],
        ),
    ],
)
def test_each_text_is_one_request(body: bytes, expected: object) -> None:
    request = asked(body)

    once, twice = PLAIN.encode_request(request, "m"), PLAIN.encode_request(request, "m")

    assert once == twice
    assert msgspec.json.decode(once) == {"requests": expected}


def test_a_length_is_not_asked_of_a_model_that_has_one_alone() -> None:
    codec = GeminiEmbeddingsProvider(EmbeddingModel(family="f", dimensions=8, sizes=()))

    body = msgspec.json.decode(codec.encode_request(asked(b'{"input":"a","dimensions":8}'), "m"))

    assert "outputDimensionality" not in body["requests"][0]


def test_what_has_no_words_there_is_named() -> None:
    body = b'{"model":"m","input":"a","user":"u","dimensions":8,"encoding_format":"float","x":1}'

    assert lost_of(asked(body)) == ("user", "x")


@pytest.mark.parametrize(
    ("body", "items", "usage"),
    [
        (b'{"embeddings":[{"values":[1,2]},{"values":[3]}]}', [b"[1,2]", b"[3]"], None),
        (b'{"embedding":{"values":[1]}}', [b"[1]"], None),
        (
            b'{"embeddings":[{"values":[1]}],"usageMetadata":{"promptTokenCount":4}}',
            [b"[1]"],
            Usage(prompt_tokens=4, total_tokens=4),
        ),
    ],
)
def test_vectors_are_read(body: bytes, items: list[bytes], usage: Usage | None) -> None:
    found = PLAIN.decode_completion(body, JSON)

    assert isinstance(found, Completion)
    assert found.vectors is not None
    assert found.vectors.form is not EmbeddingForm.OPENAI
    assert [bytes(item) for item in found.vectors.items] == items
    assert found.usage == usage


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (b'{"error":{"code":429,"message":"key secret","status":"X"}}', JSON, "IN_BAND"),
        (b'[{"error":{"code":500,"message":"no"}}]', JSON, "IN_BAND"),
        (b'{"embeddings":[]}', JSON, "MALFORMED"),
        (b'{"embeddings":[{}]}', JSON, "MALFORMED"),
        (b"{", JSON, "MALFORMED"),
        (b"<html>", "text/html", "CONTENT_TYPE"),
    ],
)
def test_what_is_no_answer_is_a_fault(body: bytes, content_type: str, kind: str) -> None:
    found = PLAIN.decode_completion(body, content_type, "secret")

    assert isinstance(found, Fault)
    assert found.kind is FaultKind[kind]
    assert "secret" not in found.message
