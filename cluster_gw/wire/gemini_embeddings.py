"""The parts of Gemini's embeddings format that the gateway reads (API reference, 2025)."""

from typing import Final

import msgspec

from cluster_gw.wire.gemini import UsageMetadata
from cluster_gw.wire.json_codec import JsonReader


class ValuesBody(msgspec.Struct):
    """One vector."""

    values: msgspec.Raw


class EmbeddedBody(msgspec.Struct, rename="camel"):
    """An answer: of a batch, or of one content."""

    embeddings: list[ValuesBody] | None = None
    embedding: ValuesBody | None = None
    usage_metadata: UsageMetadata | None = None


EMBEDDED_READER: Final = JsonReader[EmbeddedBody](EmbeddedBody)
TEXTS_READER: Final = JsonReader[str | list[str]](str | list[str])
LENGTH_READER: Final = JsonReader[int | None](int | None)
