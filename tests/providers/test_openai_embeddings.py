"""The upstream codec of embeddings: requests with only what must change, answers as vectors."""

import msgspec
import pytest

from cluster_gw.canonical.embedding import EmbeddingAsk, EmbeddingForm, EmbeddingModel
from cluster_gw.canonical.events import Completion, Usage
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.providers import provider_for
from cluster_gw.providers.base import Provider
from cluster_gw.providers.openai_embeddings import OpenAIEmbeddingsProvider
from cluster_gw.wire.json_codec import read_fields
from tests.pipeline.catalogs import make_route

PLAIN = OpenAIEmbeddingsProvider(EmbeddingModel(family="f"))
JSON = "application/json"


def asked(body: bytes) -> ChatRequest:
    return ChatRequest(
        dialect=Dialect.OPENAI,
        model="f",
        stream=False,
        embedding=EmbeddingAsk(count=1, dimensions=8),
        fields=read_fields(body),
    )


def test_a_route_that_makes_vectors_has_this_codec() -> None:
    codec: Provider = provider_for(make_route("m", embedding=EmbeddingModel(family="f")))

    assert isinstance(codec, OpenAIEmbeddingsProvider)


@pytest.mark.parametrize(
    "base",
    ["http://h/v1", "http://h/v1/", "http://h/v1/embeddings", "http://h/v1/chat/completions"],
)
def test_every_form_of_a_base_gives_its_urls(base: str) -> None:
    assert PLAIN.url(base) == "http://h/v1/embeddings"
    assert PLAIN.check_url(base) == "http://h/v1/models"


def test_a_request_keeps_all_its_members() -> None:
    body = b'{"input":[1,2],"model":"f","x":{"y": 1},"dimensions":8}'
    request = asked(body)

    once, twice = PLAIN.encode_request(request, "up"), PLAIN.encode_request(request, "up")

    assert once == twice == b'{"input":[1,2],"model":"up","x":{"y": 1},"dimensions":8}'
    assert bytes(request.fields["model"]) == b'"f"'


def test_a_length_is_not_asked_of_a_model_that_has_one_alone() -> None:
    codec = OpenAIEmbeddingsProvider(EmbeddingModel(family="f", dimensions=8, sizes=()))

    body = codec.encode_request(asked(b'{"input":"a","dimensions":8}'), "up")

    assert body == b'{"input":"a","model":"up"}'


def vectors(body: bytes) -> Completion:
    found = PLAIN.decode_completion(body, JSON)
    assert isinstance(found, Completion), found
    return found


def test_an_answer_in_order_is_passed_on() -> None:
    body = (
        b'{"object":"list","model":"up","data":[{"index":0,"embedding":[1]},'
        b'{"index":1,"embedding":"AACAPw=="}],"usage":{"prompt_tokens":3,"total_tokens":3}}'
    )

    found = vectors(body)

    assert found.raw == body
    assert found.usage == Usage(prompt_tokens=3, total_tokens=3)
    assert found.vectors is not None
    assert found.vectors.form is EmbeddingForm.OPENAI
    assert [bytes(item) for item in found.vectors.items] == [b"[1]", b'"AACAPw=="']


@pytest.mark.parametrize(
    ("data", "items"),
    [
        ([(1, [2]), (0, [1])], [b"[1]", b"[2]"]),
        ([(None, [1]), (None, [2])], [b"[1]", b"[2]"]),
    ],
)
def test_vectors_without_order_are_put_into_it(
    data: list[tuple[int | None, list[int]]], items: list[bytes]
) -> None:
    written = [{"index": index, "embedding": vector} for index, vector in data]

    found = vectors(msgspec.json.encode({"data": written}))

    assert found.vectors is not None
    assert found.vectors.form is None
    assert [bytes(item) for item in found.vectors.items] == items


@pytest.mark.parametrize(
    ("body", "content_type", "kind"),
    [
        (b'{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}', JSON, "MALFORMED"),
        (b'{"data":[{"index":1,"embedding":[1]},{"embedding":[1]}]}', JSON, "MALFORMED"),
        (b'{"data":[{"index":1,"embedding":[1]}]}', JSON, "MALFORMED"),
        (b'{"data":[{"embedding":[1]}],"error":{"message":"no"}}', JSON, "IN_BAND"),
        (b'{"error":{"message":"no"}}', JSON, "IN_BAND"),
        (b'{"data":[]}', JSON, "MALFORMED"),
        (b'{"data":[{"index":0}]}', JSON, "MALFORMED"),
        (b'{"data":"x"}', JSON, "MALFORMED"),
        (b"[]", JSON, "MALFORMED"),
        (b"{", JSON, "MALFORMED"),
        (b"<html>", "text/html", "CONTENT_TYPE"),
    ],
)
def test_what_is_no_answer_is_a_fault(body: bytes, content_type: str, kind: str) -> None:
    found = PLAIN.decode_completion(body, content_type, "secret")

    assert isinstance(found, Fault)
    assert found.kind is FaultKind[kind]
