"""Client-facing codecs: decode a request, encode an answer or an error."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cluster_gw.surfaces.base import Surface
from cluster_gw.surfaces.chat_completions import ChatCompletions

SURFACES: Final[Mapping[str, Surface]] = MappingProxyType(
    {"/v1/chat/completions": ChatCompletions()}
)
"""The codec of each path that takes generation requests."""
