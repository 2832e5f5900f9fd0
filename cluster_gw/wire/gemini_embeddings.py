"""The parts of Gemini's embeddings format that the gateway reads (API reference, 2025)."""

from typing import Annotated, Final

import msgspec

from cluster_gw.wire.gemini import FactsContent, UsageMetadata
from cluster_gw.wire.gemini_names import CONTENT, named
from cluster_gw.wire.json_codec import Fields, JsonReader
from cluster_gw.wire.openai_chat import ProviderWishes
from cluster_gw.wire.openai_embeddings import MAX_DIMENSIONS, MAX_INPUTS

Length = Annotated[int, msgspec.Meta(ge=1, le=MAX_DIMENSIONS)]


class EmbedConfig(msgspec.Struct, rename="camel"):
    """`embedContentConfig`, as far as it is read."""

    output_dimensionality: Length | None = None


class EmbedBody(msgspec.Struct, rename="camel"):
    """One content that is to become a vector; members that are not read are not checked."""

    content: FactsContent
    model: str | None = None
    output_dimensionality: Length | None = None
    embed_content_config: EmbedConfig | None = None

    @property
    def length(self) -> int | None:
        """Of the vector, where it is asked for."""
        config = self.embed_content_config or EmbedConfig()
        return self.output_dimensionality or config.output_dimensionality


class BatchBody(msgspec.Struct):
    """Several of them."""

    requests: Annotated[list[EmbedBody], msgspec.Meta(min_length=1, max_length=MAX_INPUTS)]


class WishingBody(msgspec.Struct):
    """What a client may wish for beside either."""

    models: list[str] | None = None
    provider: ProviderWishes | None = None


class ValuesBody(msgspec.Struct):
    """One vector."""

    values: msgspec.Raw


class EmbeddedBody(msgspec.Struct, rename="camel"):
    """An answer: of a batch, or of one content."""

    embeddings: list[ValuesBody] | None = None
    embedding: ValuesBody | None = None
    usage_metadata: UsageMetadata | None = None


EMBED_NAMES: Final = named(
    "task_type",
    "output_dimensionality",
    "auto_truncate",
    content=CONTENT,
    embed_content_config=named("task_type", "output_dimensionality", "auto_truncate"),
)
BATCH_NAMES: Final = named(requests=EMBED_NAMES)
EMBED_READER: Final = JsonReader[EmbedBody](EmbedBody)
BATCH_READER: Final = JsonReader[BatchBody](BatchBody)
WISHES_READER: Final = JsonReader[WishingBody](WishingBody)
ITEMS_READER: Final = JsonReader[list[Fields]](list[Fields])
EMBEDDED_READER: Final = JsonReader[EmbeddedBody](EmbeddedBody)
TEXTS_READER: Final = JsonReader[str | list[str]](str | list[str])
LENGTH_READER: Final = JsonReader[int | None](int | None)
