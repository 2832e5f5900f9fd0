"""What is going on, as answers of the admin API show it."""

from typing import Any, Literal

import msgspec

from cluster_gw.server.admin.shapes import Closed, Versioned
from cluster_gw.store.audit import Entry
from cluster_gw.store.fleet import ListedWorker
from cluster_gw.store.pins import Pin


class Used(Closed, frozen=True, kw_only=True):
    """What is used of a bound; `limit` is null without one, `used` where it cannot be read."""

    used: float | None
    limit: float | None
    ends_ms: int | None = None


class Window(Closed, frozen=True, kw_only=True):
    """One window of a key."""

    scope: Literal["model", "key", "account"]
    routes: tuple[str, ...]
    day_reset: str
    day_ends_ms: int | None
    rpm: Used
    rpd: Used
    tpm: Used
    tpd: Used
    concurrency: Used


class KeyCaps(Closed, frozen=True, kw_only=True):
    """What a key has used of its caps over all its models."""

    rpd: Used
    tpd: Used
    monthly_tokens: Used


class KeyWindows(Closed, frozen=True, kw_only=True):
    """The windows of a key."""

    provider: str
    key: str
    account: str
    windows: tuple[Window, ...]
    caps: KeyCaps | None


class Benched(Versioned, frozen=True, kw_only=True):
    """A key that rests, and until when, ms since the epoch."""

    id: str
    rests_until_ms: int


class Cleared(Versioned, frozen=True, kw_only=True):
    """How many records said something, and do not any more."""

    cleared: int
    id: str | None = None


class ShownWorker(ListedWorker, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A worker of any group."""


class Drained(Versioned, frozen=True, kw_only=True):
    """What came of it; `workers` is null for all."""

    drained: bool
    workers: tuple[str, ...] | None
    changed: tuple[str, ...]


class ShownSnapshot(Versioned, frozen=True, kw_only=True):
    """The snapshot that the answering worker ranks by."""

    version: int
    age_ms: int | None
    at_ms: int | None
    builder: str | None
    workers: int
    records: dict[str, int]
    section: str | None = None
    items: dict[str, Any] | None = None


class ShownPin(Pin, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a run or a session stays, and whether requests would find it now."""

    is_current: bool


class ShownPins(Versioned, frozen=True, kw_only=True):
    """Pins; `complete` is false where there are more."""

    items: tuple[ShownPin, ...]
    complete: bool


class PinsRemoved(Versioned, frozen=True, kw_only=True):
    """How many pins there were of what was named."""

    removed: int
    complete: bool
    combo: str | None = None
    scope: str | None = None
    key: str | None = None


class ShownEntry(Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change, who made it and when, ms since the epoch."""

    at_ms: int


class Points(Closed, frozen=True, kw_only=True):
    """The penalty of a route."""

    value: float
    hits: int
    failures: int
    rate_limit_factor: float


class HeldRow(msgspec.Struct, frozen=True, kw_only=True):
    """What is held against a route."""

    route: str
    provider: str
    model: str
    name: str
    enabled: bool
    fallback_enabled: bool
    priority: int | None
    penalty: Points
    benched_until_ms: int | None
    cooldowns: tuple[dict[str, Any], ...]
    breakers: tuple[dict[str, Any], ...]
    recent_errors: tuple[dict[str, Any], ...] | None
    recent_error_count: int | None
    reasons: tuple[str, ...]


class ProviderTrouble(Closed, frozen=True, kw_only=True):
    """A provider that is not well as a whole."""

    provider: str
    breaker: str
    opens_in_ms: int
    failed_targets: int


class Inspected(Versioned, frozen=True, kw_only=True):
    """Everything that is held against routes of a combo now."""

    combo: str
    generated_at_ms: int
    lookback_minutes: int
    rows: tuple[HeldRow, ...]
    providers: tuple[ProviderTrouble, ...]


class KeyState(Closed, frozen=True, kw_only=True):
    """What checks said of a key."""

    provider: str
    key: str
    status: str
    is_used: bool
    rejections: int
    reason: str | None
    last_check: str | None
    checked_at_ms: int | None
    since_ms: int | None
    is_checkable: bool
    secret_unread: bool


class ModelState(Closed, frozen=True, kw_only=True):
    """What failures proved of a model."""

    provider: str
    model: str
    status: str
    reason: str
    at_ms: int


class PoolState(Closed, frozen=True, kw_only=True):
    """Whether few providers are usable."""

    degraded: bool
    usable_providers: int
    providers: int


class Ordered(Closed, frozen=True, kw_only=True):
    """A check that is ordered and not done."""

    provider: str | None
    key: str | None
    ordered_at_ms: int
    began_at_ms: int | None


class LastPass(Closed, frozen=True, kw_only=True):
    """What the last ordered check came to."""

    began_at_ms: int
    ended_at_ms: int
    valid: int
    rejected: int
    unknown: int


class Checks(Closed, frozen=True, kw_only=True):
    """Checks that are ordered, and the last one that was."""

    ordered: tuple[Ordered, ...]
    last_ordered: LastPass | None


class ShownHealth(Versioned, frozen=True, kw_only=True):
    """What is known of keys, models and the pool."""

    items: tuple[KeyState, ...]
    models: tuple[ModelState, ...]
    pool: PoolState
    checks: Checks


class PlannedKey(Closed, frozen=True, kw_only=True):
    """A key that will be checked, or cannot be."""

    provider: str
    key: str


class CheckPlanned(Versioned, frozen=True, kw_only=True):
    """A check that was ordered."""

    ordered_at_ms: int
    already_ordered: bool
    takes_ms: int
    planned: tuple[PlannedKey, ...]
    not_checkable: tuple[PlannedKey, ...]


class CacheRemoved(Versioned, frozen=True, kw_only=True):
    """How many stored answers there were of what was named."""

    removed: int
    client: str | None = None
    model: str | None = None


class RequestLine(Closed, frozen=True, kw_only=True):
    """A request of which a record is kept."""

    id: str
    at_ms: int
    client: str
    combo: str
    strategy: str
    status: int
    code: str | None
    stream: bool
    route: str | None
    key: str | None
    attempts: int
    tokens: int
    duration_ms: float
    first_byte_ms: float | None
    worker: str
    is_degraded: bool
