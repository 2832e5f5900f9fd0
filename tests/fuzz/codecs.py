"""The codecs that are fuzzed: those of the product's tables, so that a new one joins by itself."""

from collections.abc import Mapping

import msgspec

from cluster_gw.canonical.embedding import EmbeddingModel
from cluster_gw.canonical.request import Dialect
from cluster_gw.providers import provider_for
from cluster_gw.providers.base import Provider
from cluster_gw.providers.quirks import QUIRKS
from cluster_gw.surfaces import SURFACES
from cluster_gw.surfaces.base import StreamHead, Surface
from cluster_gw.surfaces.gemini import CountTokens, GenerateContent
from cluster_gw.surfaces.gemini_embeddings import BatchEmbedContents, EmbedContent
from cluster_gw.surfaces.gemini_stream import ArrayFraming
from cluster_gw.surfaces.messages import CountedMessages

SECRET = "sk-0f3c9a7e51b24d68"
VECTORS = EmbeddingModel(family="vectors", dimensions=3)


class Facts(msgspec.Struct, frozen=True):
    """What of a route a codec depends on."""

    dialect: Dialect
    quirks: frozenset[str] = frozenset()
    embedding: EmbeddingModel | None = None


def providers() -> Mapping[str, Provider]:
    """The codec of each dialect, for generation and for embeddings, and of each kind of stream."""
    found: dict[str, Provider] = {str(one): provider_for(Facts(one)) for one in Dialect}
    for dialect in (Dialect.OPENAI, Dialect.GEMINI):
        codec = provider_for(Facts(dialect, embedding=VECTORS))
        found[f"{dialect}-embeddings"] = codec
    kinds = {type(codec.stream_decoder()) for name, codec in found.items() if "embed" not in name}
    for dialect in Dialect:
        for quirk in sorted(QUIRKS):
            codec = provider_for(Facts(dialect, frozenset({quirk})))
            if type(codec.stream_decoder()) not in kinds:
                kinds.add(type(codec.stream_decoder()))
                found[f"{dialect}-{quirk}"] = codec
    return found


def streaming() -> Mapping[str, Provider]:
    """Those that answer in streams."""
    return {name: codec for name, codec in providers().items() if "embeddings" not in name}


def surfaces() -> Mapping[str, Surface]:
    """The codec of each client API."""
    found = {path.removeprefix("/v1/").replace("/", "-"): one for path, one in SURFACES.items()}
    found["gemini"] = GenerateContent("m")
    found["gemini-counting"] = CountTokens("m")
    found["messages-counting"] = CountedMessages()
    found["gemini-embedding"] = EmbedContent("m")
    found["gemini-embeddings"] = BatchEmbedContents("m")
    return found


class ArraySurface(GenerateContent):
    """Gemini's codec of one stream for a client that wants one array."""

    def __init__(self) -> None:
        super().__init__("m", stream=True, framing=ArrayFraming)


def head(*, is_native: bool) -> StreamHead:
    """What an answer says of itself."""
    return StreamHead(id="0" * 32, model="m", created_s=1, include_usage=True, is_native=is_native)
