"""Client-facing codecs: decode a request, encode an answer or an error."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cluster_gw.surfaces.base import Surface
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.messages import Messages

SURFACES: Final[Mapping[str, Surface]] = MappingProxyType(
    {"/v1/chat/completions": ChatCompletions(), "/v1/messages": Messages()}
)
"""The codec of each path that takes generation requests."""
