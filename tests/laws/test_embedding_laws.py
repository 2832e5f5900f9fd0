"""Laws of embeddings: what is written is read back, in order, by whichever codec."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.embedding import EmbeddingForm, EmbeddingModel
from cluster_gw.canonical.events import Completion, Usage
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.providers.base import Provider
from cluster_gw.providers.gemini_embeddings import GeminiEmbeddingsProvider
from cluster_gw.providers.openai_embeddings import OpenAIEmbeddingsProvider
from cluster_gw.surfaces.embeddings import Embeddings, vectors_json
from cluster_gw.wire.json_codec import raw
from cluster_gw.wire.vectors import as_base64, as_numbers, read_vector

SURFACE = Embeddings()
MODEL = EmbeddingModel(family="f")
CODECS: tuple[Provider, ...] = (OpenAIEmbeddingsProvider(MODEL), GeminiEmbeddingsProvider(MODEL))
OPENAI, GEMINI = CODECS
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
VECTORS = st.lists(st.lists(FLOATS, min_size=1, max_size=4), min_size=1, max_size=5)
TEXTS = st.text(min_size=1, max_size=8)
BODIES = st.fixed_dictionaries(
    {"model": st.just("f"), "input": TEXTS | st.lists(TEXTS, min_size=1, max_size=5)},
    optional={
        "dimensions": st.none() | st.integers(1, 64),
        "encoding_format": st.sampled_from([None, "float", "base64"]),
        "user": TEXTS,
        "x_unknown": st.recursive(st.none() | st.integers(), st.lists, max_leaves=5),
    },
)


def numbers_of(completion: object) -> list[list[float]]:
    assert isinstance(completion, Completion), completion
    assert completion.vectors is not None
    return [list(read_vector(item)) for item in completion.vectors.items]


@settings(deadline=None)
@given(VECTORS, st.booleans(), st.integers(1, 9))
def test_what_is_written_for_a_client_is_read_back(
    vectors: list[list[float]], in_base64: bool, tokens: int
) -> None:
    rewrite = as_base64 if in_base64 else as_numbers
    usage = Usage(prompt_tokens=tokens, total_tokens=tokens)

    body = vectors_json([rewrite(raw(one)) for one in vectors], "m", usage)
    completion = OPENAI.decode_completion(body, "application/json")

    assert numbers_of(completion) == vectors
    assert isinstance(completion, Completion)
    assert completion.usage == usage
    assert completion.vectors is not None
    assert completion.vectors.form is EmbeddingForm.OPENAI


@settings(deadline=None)
@given(VECTORS.flatmap(lambda v: st.tuples(st.just(v), st.permutations(range(len(v))))))
def test_vectors_come_in_the_order_of_their_inputs_however_they_were_sent(
    sent: tuple[list[list[float]], list[int]],
) -> None:
    vectors, order = sent
    data = [{"index": place, "embedding": vectors[place]} for place in order]

    completion = OPENAI.decode_completion(msgspec.json.encode({"data": data}), "application/json")

    assert numbers_of(completion) == vectors


@settings(deadline=None)
@given(VECTORS)
def test_geminis_vectors_are_the_same_numbers(vectors: list[list[float]]) -> None:
    body = msgspec.json.encode({"embeddings": [{"values": one} for one in vectors]})

    assert numbers_of(GEMINI.decode_completion(body, "application/json")) == vectors


@pytest.mark.parametrize("codec", CODECS, ids=["openai", "gemini"])
@settings(deadline=None)
@given(body=BODIES)
def test_encoding_is_repeatable_and_leaves_the_request_alone(
    codec: Provider, body: dict[str, Any]
) -> None:
    request = decoded(body)
    before = dict(request.fields)

    assert codec.encode_request(request, "up") == codec.encode_request(request, "up")
    assert request.fields == before


@settings(deadline=None)
@given(BODIES)
def test_every_input_is_asked_for_once_and_in_order(body: dict[str, Any]) -> None:
    request = decoded(body)
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]

    plain = msgspec.json.decode(OPENAI.encode_request(request, "up"))
    batch = msgspec.json.decode(GEMINI.encode_request(request, "up"))["requests"]

    assert plain == {**body, "model": "up"}
    assert [one["content"]["parts"] for one in batch] == [[{"text": text}] for text in texts]
    assert {one.get("outputDimensionality") for one in batch} == {body.get("dimensions")}
    assert request.embedding is not None
    assert request.embedding.count == len(texts)


def decoded(body: dict[str, Any]) -> ChatRequest:
    request = SURFACE.decode_request(msgspec.json.encode(body))
    assert isinstance(request, ChatRequest), request
    return request
