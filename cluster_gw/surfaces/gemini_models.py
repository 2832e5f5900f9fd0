"""Encodes a page of `GET /v1beta/models`, and `GET /v1beta/models/{model}`, in Gemini's shape."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.models import ListedModel
from cluster_gw.surfaces.refusals import refused
from cluster_gw.wire.json_codec import write

METHODS: Final = ("generateContent", "countTokens")
VECTOR_METHODS: Final = ("embedContent", "batchEmbedContents")
PREFIX: Final = "models/"


class GeminiPage(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a listing is asked for.

    Attributes:
        size: most entries; None for all.
        token: what the page before gave; empty for the beginning.
    """

    size: int | None = None
    token: str = ""


def encode_gemini_models(models: Sequence[ListedModel], page: GeminiPage) -> bytes | ErrorBody:
    """The body of one page; the error of a token that leads nowhere, or no longer."""
    start = 0
    if page.token:
        last, ids = last_of(page.token), [model.id for model in models]
        if last not in ids:
            message = "pageToken is of no page of this listing; begin without one."
            return refused("invalid_request", message, "pageToken")
        start = ids.index(last) + 1
    shown = models[start:] if page.size is None else models[start : start + page.size]
    document: dict[str, Any] = {"models": [model_json(model) for model in shown]}
    if shown and start + len(shown) < len(models):
        document["nextPageToken"] = token_of(shown[-1].id)
    return write(document)


def token_of(last: str) -> str:
    """The token of the page behind an entry."""
    return urlsafe_b64encode(last.encode()).decode().rstrip("=")


def last_of(token: str) -> str:
    """The id of the last entry before the page of a token; empty for what is no token."""
    try:
        return urlsafe_b64decode(token.encode() + b"=" * (-len(token) % 4)).decode()
    except (binascii.Error, UnicodeError):
        return ""


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
