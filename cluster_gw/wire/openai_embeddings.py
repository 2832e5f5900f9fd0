"""The parts of OpenAI's embeddings format that the gateway reads (API reference, 2025)."""

from typing import Annotated, Final, Literal

import msgspec

from cluster_gw.wire.json_codec import JsonReader
from cluster_gw.wire.openai_chat import ProviderWishes, UsageBody

MAX_INPUTS: Final = 2048  # the vendor's own bound
MAX_DIMENSIONS: Final = 65_536


class EmbeddingsBody(msgspec.Struct):
    """What is read of a request; members that are not read are not checked."""

    input: str | list[str | int | list[int]]
    model: str | None = None
    dimensions: Annotated[int, msgspec.Meta(ge=1, le=MAX_DIMENSIONS)] | None = None
    encoding_format: Literal["float", "base64"] | None = None
    user: str | None = None
    models: list[str] | None = None
    provider: ProviderWishes | None = None


class EmbeddingBody(msgspec.Struct):
    """One vector of an answer."""

    embedding: msgspec.Raw
    index: int | None = None


class VectorsBody(msgspec.Struct):
    """An answer."""

    data: list[EmbeddingBody] | None = None
    model: str | None = None
    usage: UsageBody | None = None
    error: msgspec.Raw | None = None


EMBEDDINGS_READER: Final = JsonReader[EmbeddingsBody](EmbeddingsBody)
VECTORS_READER: Final = JsonReader[VectorsBody](VectorsBody)
