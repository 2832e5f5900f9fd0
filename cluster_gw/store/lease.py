"""The values of admission: what is asked, what is granted, what is reported back.

Import them from `store.admission`; they live here so that its parts can share them.
"""

import msgspec

from cluster_gw.core.limits.windows import MINUTE_BUCKETS, Gate, Limits
from cluster_gw.units import KeyId, LeaseId


class TargetLimits(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A target as admission sees it; built once per catalog, not per request."""

    provider: str
    account: str
    key: KeyId
    model: str
    day_reset: str
    model_limits: Limits
    key_limits: Limits


class Lease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Admitted capacity.

    Attributes:
        admitted_at_s: the worker's monotonic clock when the reply arrived.
        requests_left: what the tightest window had left this minute, -1 when none is limited.
        tokens_left: the same in tokens.
        second: in which it was counted, by the server's clock; 0 when unknown.
    """

    id: LeaseId
    target: TargetLimits
    estimate_tokens: int
    prompt_tokens: int
    admitted_at_s: float
    requests_left: int = -1
    tokens_left: int = -1
    second: int = 0


class Refusal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why a target was not admitted and how long until it may be; never an error."""

    gate: Gate
    scope: str  # "model" or "key"
    retry_after_ms: int


class Settlement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The fact that replaces an estimate.

    Attributes:
        counts_request: False only when nothing was sent upstream.
        tokens: what was used; 0 for a failed attempt without reported usage.
        outcome: `success`, or a failure class; kept for statistics.
    """

    counts_request: bool
    tokens: int
    outcome: str


def slot_name(second: int) -> str:
    """The field of a window that holds a second that is over; a guess saves the script a look."""
    return f"m{second % MINUTE_BUCKETS}"
