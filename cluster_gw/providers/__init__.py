"""Upstream-facing codecs and presets: encode a request, decode an answer or an error."""

from typing import Final, Protocol

from cluster_gw.canonical.embedding import EmbeddingModel
from cluster_gw.canonical.request import Dialect
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.providers.base import Provider
from cluster_gw.providers.gemini import GeminiProvider
from cluster_gw.providers.gemini_embeddings import GeminiEmbeddingsProvider
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.providers.openai_embeddings import OpenAIEmbeddingsProvider
from cluster_gw.providers.openai_responses import OpenAIResponsesProvider

SUPPORTED_DIALECTS: Final = frozenset(Dialect)


class RouteFacts(Protocol):
    """What of a route decides how to talk to it."""

    @property
    def dialect(self) -> Dialect:
        """The wire format of the upstream."""

    @property
    def quirks(self) -> frozenset[str]:
        """Names out of `quirks.QUIRKS`."""

    @property
    def embedding(self) -> EmbeddingModel | None:
        """What its model does where it makes vectors; None for generation."""


def provider_for(route: RouteFacts) -> Provider:
    """The codec of a route.

    Raises:
        ValueError: no codec speaks the dialect (configuration refuses it earlier).
        KeyError: a quirk is unknown (likewise).
    """
    if route.dialect not in SUPPORTED_DIALECTS:
        raise ValueError(f"no upstream codec speaks {route.dialect}")
    if route.embedding is not None:
        is_gemini = route.dialect is Dialect.GEMINI
        maker = GeminiEmbeddingsProvider if is_gemini else OpenAIEmbeddingsProvider
        return maker(route.embedding, route.quirks)
    if route.dialect is Dialect.OPENAI_RESPONSES:
        return OpenAIResponsesProvider(route.quirks)
    if route.dialect is Dialect.ANTHROPIC:
        return AnthropicProvider(route.quirks)
    if route.dialect is Dialect.GEMINI:
        return GeminiProvider(route.quirks)
    return OpenAIChatProvider(route.quirks)
