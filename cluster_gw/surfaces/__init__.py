"""Client-facing codecs: decode a request, encode an answer or an error."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cluster_gw.surfaces.base import Surface
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.completions import Completions
from cluster_gw.surfaces.embeddings import Embeddings
from cluster_gw.surfaces.messages import Messages
from cluster_gw.surfaces.responses import Responses

SURFACES: Final[Mapping[str, Surface]] = MappingProxyType(
    {
        "/v1/chat/completions": ChatCompletions(),
        "/v1/messages": Messages(),
        "/v1/responses": Responses(),
        "/v1/completions": Completions(),
        "/v1/embeddings": Embeddings(),
    }
)
"""The codec of each path that takes requests for generation or embeddings."""
