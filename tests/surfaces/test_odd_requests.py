"""Whatever stands wherever in a request: it is refused by its place, or every codec can say it."""

import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

import msgspec
import pytest

from cluster_gw.canonical.embedding import EmbeddingModel
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.core.limits.demand import estimate_demand
from cluster_gw.errors import ErrorBody
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.providers.base import Provider
from cluster_gw.providers.gemini import GeminiProvider
from cluster_gw.providers.gemini_embeddings import GeminiEmbeddingsProvider
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.providers.openai_embeddings import OpenAIEmbeddingsProvider
from cluster_gw.providers.openai_responses import OpenAIResponsesProvider
from cluster_gw.surfaces import SURFACES
from cluster_gw.surfaces.base import Surface
from cluster_gw.surfaces.gemini import CountTokens, GenerateContent
from cluster_gw.surfaces.gemini_embeddings import BatchEmbedContents, EmbedContent
from cluster_gw.surfaces.messages import CountedMessages
from cluster_gw.wire.json_codec import UnexpectedShapeError
from tests.fakes.rich_bodies import BODIES, ODD, paths, spoilt

AT_EACH_PLACE: Final = 4  # of what is odd; the next place gets the next of it
OTHERS: Final[Mapping[str, Callable[[], Surface]]] = MappingProxyType(
    {
        "/v1/messages/count_tokens": CountedMessages,
        ":generateContent": lambda: GenerateContent("m"),
        ":streamGenerateContent": lambda: GenerateContent("m", stream=True),
        ":countTokens": lambda: CountTokens("m"),
        ":embedContent": lambda: EmbedContent("m"),
        ":batchEmbedContents": lambda: BatchEmbedContents("m"),
    }
)
CODECS: Final[tuple[Provider, ...]] = (
    *(OpenAIChatProvider(), OpenAIResponsesProvider(), AnthropicProvider(), GeminiProvider()),
    *(OpenAIChatProvider({"max_output_400"}), AnthropicProvider({"max_output_400"})),
)
OF_TEXTS: Final = GeminiEmbeddingsProvider(EmbeddingModel(family="f"))
EMBEDDERS: Final = (OpenAIEmbeddingsProvider(EmbeddingModel(family="f")), OF_TEXTS)


@pytest.mark.parametrize("path", BODIES)
def test_odd_requests_are_refused_or_said(path: str) -> None:
    surface = OTHERS[path]() if path in OTHERS else SURFACES[path]
    odd = itertools.cycle(ODD)
    rich = surface.decode_request(msgspec.json.encode(BODIES[path]))
    assert isinstance(rich, ChatRequest), rich

    for place in paths(BODIES[path]):
        for value in itertools.islice(odd, AT_EACH_PLACE):
            request = surface.decode_request(spoilt(BODIES[path], place, value))
            if isinstance(request, ErrorBody):
                assert 400 <= request.status < 500
                assert request.code in {"invalid_json", "invalid_request", "response_not_found"}
                assert surface.encode_error(request, "id")
            else:
                say(surface, request)


def say(surface: Surface, request: ChatRequest) -> None:
    """Write it for every upstream; only what another dialect cannot read may be refused."""
    estimate_demand(request)
    if request.embedding is not None:
        for embedder in EMBEDDERS:
            if embedder is not OF_TEXTS or not request.embedding.token_counts:
                embedder.encode_noted(request, "up")
        return
    for codec in CODECS:
        if codec.dialect is request.dialect:
            assert codec.encode_request(request, "up")
        else:
            with suppress(UnexpectedShapeError):
                assert codec.encode_conversation(surface.read_conversation(request), "up").body


@pytest.mark.parametrize("path", [":generateContent", ":countTokens", "/v1/messages"])
def test_values_that_would_hold_up_the_worker_are_refused_by_their_number(path: str) -> None:
    surface = OTHERS[path]() if path in OTHERS else SURFACES[path]
    crowd = b"[" + b"0," * 1_000_001 + b"0]"

    error = surface.decode_request(spoilt(BODIES[path] | {"top_k": 1}, ("top_k",), crowd))

    assert isinstance(error, ErrorBody)
    assert "values" in error.message


@pytest.mark.parametrize(
    ("surface", "body", "lost"),
    [
        (
            SURFACES["/v1/chat/completions"],
            {"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "regex"}},
            "response_format (regex)",
        ),
        (
            SURFACES["/v1/responses"],
            {"input": "x", "text": {"format": {"type": "grammar"}}},
            "text.format (grammar)",
        ),
    ],
)
def test_formats_other_than_json_are_named_as_lost(
    surface: Surface, body: dict[str, Any], lost: str
) -> None:
    request = surface.decode_request(msgspec.json.encode(body))
    assert isinstance(request, ChatRequest)

    conversation = surface.read_conversation(request)

    assert (conversation.format, conversation.lost) == (None, (lost,))
