"""Encodes `GET /v1/models` in Anthropic's shape, page by page, with our own members beside."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from cluster_gw.surfaces.models import CREATED_S, ListedModel
from cluster_gw.wire.json_codec import write

CREATED: Final = datetime.fromtimestamp(CREATED_S, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a listing is asked for.

    Attributes:
        limit: most entries; None for all.
        after: id of the entry before the first that is wanted; empty for the beginning.
        before: id of the entry behind the last that is wanted; empty for the end.
    """

    limit: int | None = None
    after: str = ""
    before: str = ""


def encode_vendor_models(models: Sequence[ListedModel], page: Page) -> bytes:
    """The body of one page; an id that is not listed bounds nothing."""
    ids = [model.id for model in models]
    start = ids.index(page.after) + 1 if page.after in ids else 0
    end = ids.index(page.before) if page.before in ids else len(ids)
    wanted = models[start:end]
    shown = wanted if page.limit is None else cut(wanted, page)
    return write(
        {
            "data": [vendor_model_json(model) for model in shown],
            "has_more": len(shown) < len(wanted),
            "first_id": shown[0].id if shown else None,
            "last_id": shown[-1].id if shown else None,
        }
    )


def cut(wanted: Sequence[ListedModel], page: Page) -> Sequence[ListedModel]:
    """As many as the limit allows: the last of them when what comes before an id is asked for."""
    limit = len(wanted) if page.limit is None else page.limit
    if page.before and not page.after:
        return wanted[max(0, len(wanted) - limit) :]
    return wanted[:limit]


def encode_vendor_model(model: ListedModel) -> bytes:
    """The body of one model."""
    return write(vendor_model_json(model))


def vendor_model_json(model: ListedModel) -> dict[str, Any]:
    """One entry; unknown facts are left out."""
    entry: dict[str, Any] = {
        "type": "model",
        "id": model.id,
        "display_name": model.name or model.id,
        "created_at": CREATED,
        "lifecycle": "active",
        "owned_by": model.owned_by,
    }
    if model.context_window is not None:
        entry["max_input_tokens"] = model.context_window
    entry["available"] = model.available
    if model.unavailable_reason is not None:
        entry["unavailable_reason"] = model.unavailable_reason
    return entry
