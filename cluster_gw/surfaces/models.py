"""Encodes `GET /v1/models` and `GET /v1/models/{id}` in OpenAI's shape, with our own members."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from cluster_gw.wire.json_codec import write

# The format demands a creation time and names have none; a constant keeps answers reproducible.
CREATED_S: Final = 1_700_000_000


class ListedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One name that clients may ask for.

    Attributes:
        id: what goes into `model`.
        owned_by: provider, or the gateway itself for a combo.
        name: for people; empty when there is none.
        context_window: tokens, None when unknown.
        available: whether a usable key exists right now.
        parameters: optional members of a request that whoever serves it understands.
        unavailable_reason: `no_key` or `disabled`; None when it is available.
        is_embedding: it makes vectors and answers no chat.
        dimensions: length of them, None when unknown.
    """

    id: str
    owned_by: str
    name: str = ""
    context_window: int | None = None
    available: bool = True
    parameters: tuple[str, ...] = ()
    unavailable_reason: str | None = None
    is_embedding: bool = False
    dimensions: int | None = None


def encode_models(models: Iterable[ListedModel]) -> bytes:
    """The body of the listing."""
    return write({"object": "list", "data": [model_json(model) for model in models]})


def encode_model(model: ListedModel) -> bytes:
    """The body of one model."""
    return write(model_json(model))


def model_json(model: ListedModel) -> dict[str, Any]:
    """One entry; unknown facts are left out."""
    entry: dict[str, Any] = {
        "id": model.id,
        "object": "model",
        "created": CREATED_S,
        "owned_by": model.owned_by,
    }
    if model.name:
        entry["name"] = model.name
    if model.context_window is not None:
        entry["context_window"] = entry["context_length"] = model.context_window
    if model.parameters:
        entry["supported_parameters"] = list(model.parameters)
    if model.is_embedding:
        entry["type"] = "embedding"
    if model.dimensions is not None:
        entry["dimensions"] = model.dimensions
    entry["available"] = model.available
    if model.unavailable_reason is not None:
        entry["unavailable_reason"] = model.unavailable_reason
    return entry
