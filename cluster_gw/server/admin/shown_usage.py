"""What was used, as `/api/usage` shows it."""

from msgspec import UNSET, UnsetType, field

from cluster_gw.server.admin.shapes import Closed, Versioned


class UsageSum(Closed, frozen=True, kw_only=True):
    """What was used; `cost_usd` is null where nothing of it has a price."""

    requests: int
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    unpriced_requests: int
    errors: int
    errors_by_family: dict[str, int]
    cancelled: int
    cache_hits: int
    saved_prompt_tokens: int
    saved_completion_tokens: int


class UsageGroup(UsageSum, frozen=True, kw_only=True):
    """The same of one group, with what it was grouped by; `key` is null for cache hits."""

    client: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    key: str | UnsetType | None = UNSET
    day: str | UnsetType = UNSET


class ShownUsage(Versioned, frozen=True, kw_only=True):
    """A page of groups, and the sum of all of them."""

    first: str = field(name="from")
    to: str
    group_by: tuple[str, ...]
    items: tuple[UsageGroup, ...]
    total: UsageSum
    total_items: int
    offset: int
    next_offset: int | None
    has_other: bool
    unreadable: tuple[str, ...]
