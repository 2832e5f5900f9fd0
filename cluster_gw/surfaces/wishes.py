"""`models` and `provider` of a body, in OpenRouter's form: what else may serve, and who may not.

The names are the gateway's own, so no upstream must see them; what else stands in `provider` is
none of ours and travels on.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

from cluster_gw.canonical.request import Wishes
from cluster_gw.wire.json_codec import FIELDS_READER, Fields, raw
from cluster_gw.wire.openai_chat import ProviderWishes, SortWish

MODELS: Final = "models"
PROVIDER: Final = "provider"
OURS: Final = ("order", "only", "ignore", "allow_fallbacks", "sort")
REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        MODELS: "Send an array of at most 32 names from GET /v1/models, or leave it out.",
        PROVIDER: "Send an object with order, only, ignore or sort, or leave it out.",
        "order": "Send an array of at most 32 provider names.",
        "only": "Send an array of at most 32 provider names.",
        "ignore": "Send an array of at most 32 provider names.",
        "allow_fallbacks": "Send true or false without quotes.",
        "sort": "Send price, throughput or latency, or leave it out.",
    }
)
NO_PROVIDER: Final = ProviderWishes()


class Wishing(Protocol):
    """A body that may hold wishes, in whatever dialect."""

    @property
    def models(self) -> list[str] | None:
        """`models`."""

    @property
    def provider(self) -> ProviderWishes | None:
        """`provider`."""


def take_wishes(fields: Fields, body: Wishing) -> Wishes | None:
    """Take them out of `fields`; None when nothing is wished for.

    Args:
        fields: members of the body; changed in place.
        body: the same body, read.
    """
    fields.pop(MODELS, None)
    wanted = body.provider or NO_PROVIDER
    if (given := fields.pop(PROVIDER, None)) is not None and body.provider is not None:
        rest = {k: v for k, v in FIELDS_READER.read(given).items() if k not in OURS}
        if rest:
            fields[PROVIDER] = raw(rest)
    only, sort = only_of(wanted), wanted.sort
    if not (body.models or wanted.order or only is not None or wanted.ignore or sort):
        return None
    return Wishes(
        models=tuple(body.models or ()),
        order=tuple(wanted.order or ()),
        only=only,
        ignore=tuple(wanted.ignore or ()),
        sort=sort.by if isinstance(sort, SortWish) else sort,
    )


def only_of(wanted: ProviderWishes) -> tuple[str, ...] | None:
    """The only providers that may serve: without fallbacks those of the order are; None for all."""
    if wanted.order and wanted.allow_fallbacks is False:
        allowed = wanted.order if wanted.only is None else wanted.only
        return tuple(name for name in wanted.order if name in allowed)
    return None if wanted.only is None else tuple(wanted.only)
