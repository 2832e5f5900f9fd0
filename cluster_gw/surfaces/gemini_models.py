"""Encodes `GET /v1beta/models` and `GET /v1beta/models/{model}` in Gemini's shape."""

from collections.abc import Iterable
from typing import Any, Final

from cluster_gw.surfaces.models import ListedModel
from cluster_gw.wire.json_codec import write

METHODS: Final = ("generateContent", "countTokens")
VECTOR_METHODS: Final = ("embedContent", "batchEmbedContents")
PREFIX: Final = "models/"


def encode_gemini_models(models: Iterable[ListedModel]) -> bytes:
    """The body of the listing; it is whole, so there is no page after it."""
    return write({"models": [model_json(model) for model in models]})


def encode_gemini_model(model: ListedModel) -> bytes:
    """The body of one model."""
    return write(model_json(model))


def model_json(model: ListedModel) -> dict[str, Any]:
    """One entry; unknown facts are left out."""
    entry: dict[str, Any] = {
        "name": f"{PREFIX}{model.id}",
        "baseModelId": model.id,
        "version": "1",
        "displayName": model.name or model.id,
        "supportedGenerationMethods": list(VECTOR_METHODS if model.is_embedding else METHODS),
    }
    if model.context_window is not None:
        entry["inputTokenLimit"] = model.context_window
    entry["ownedBy"] = model.owned_by
    entry["available"] = model.available
    if model.unavailable_reason is not None:
        entry["unavailableReason"] = model.unavailable_reason
    return entry
