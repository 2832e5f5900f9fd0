"""The configuration, as answers of the admin API show it."""

from typing import Any, Literal

import msgspec

from cluster_gw.core.limits.bench import BenchPolicy
from cluster_gw.core.limits.breaker import BreakerPolicy
from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.cooldown import CooldownPolicy
from cluster_gw.core.limits.degraded import DegradedPolicy
from cluster_gw.core.limits.penalty import PenaltyPolicy
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.outcome.peek import PeekPolicy
from cluster_gw.core.outcome.retry import AttemptPolicy
from cluster_gw.core.routing.presets import PeakHours
from cluster_gw.server.admin.shapes import Closed, Versioned
from cluster_gw.settings.client import ClientLimits
from cluster_gw.settings.pool import ComboSettings, MemberSettings, ModelSettings
from cluster_gw.settings.sections import CacheSettings


class ShownKey(Closed, frozen=True, kw_only=True):
    """A credential of a provider; of its secret only where it is from, and what is wrong there."""

    id: str
    provider: str
    models: tuple[str, ...] | None
    account: str
    base_url: str | None
    limits: Limits
    caps: Caps
    enabled: bool
    proxy: str | None = None
    secret_source: Literal["file", "run_time"]
    secret_set_at_ms: int | None
    secret_problem: str | None


class Replaced(ShownKey, frozen=True, kw_only=True):
    """A key with another secret: which workers have it, and what was forgotten of the old one."""

    config_version: int
    warnings: tuple[str, ...] = ()
    taken_by: tuple[str, ...]
    waiting_for: tuple[str, ...]
    unread_by: tuple[str, ...]
    forgotten: int
    check_ordered: bool


class Resealed(Versioned, frozen=True, kw_only=True):
    """Keys whose secrets are encrypted anew, and those still under a key that is not here."""

    resealed: tuple[str, ...]
    left: tuple[str, ...]


class ShownModel(ModelSettings, frozen=True, kw_only=True):
    """A model, its routes and the keys that may serve it."""

    id: str
    speed_rank_measured: int | None
    routes: tuple[str, ...]
    keys: tuple[str, ...]


class ShownCombo(ComboSettings, frozen=True, kw_only=True):
    """A combo with every member, and what its family decides where nothing is said."""

    members: tuple[MemberSettings, ...] = ()
    all_routes: bool
    default: bool


class ShownProfile(ShownCombo, frozen=True, kw_only=True):
    """A profile, and whether it is the active one."""

    active: bool


class ShownPrevious(Closed, frozen=True, kw_only=True):
    """A key of a client that is still taken, and until when, ms since the epoch."""

    fingerprint: str
    until_ms: int


class ShownClient(Closed, frozen=True, kw_only=True):
    """An app with a key of its own; of keys the first digits of their hashes."""

    id: str
    limits: ClientLimits
    combos: tuple[str, ...]
    detail: bool
    enabled: bool
    fingerprint: str
    previous_keys: tuple[ShownPrevious, ...]
    made: bool


class NewKey(ShownClient, frozen=True, kw_only=True):
    """A client with a fresh key, which nobody can read later."""

    key: str
    config_version: int
    warnings: tuple[str, ...] = ()
    previous_until_ms: int | None = None


class Removed(Versioned, frozen=True, kw_only=True):
    """What was made at run time is gone."""

    id: str
    deleted: bool


class ShownPatch(Closed, frozen=True, kw_only=True):
    """A change that does not fit the file of this group."""

    patch: str
    faults: tuple[str, ...]


class ShownConfig(Versioned, frozen=True, kw_only=True):
    """What was changed at run time, by noun and id."""

    changes: dict[str, dict[str, dict[str, Any]]]
    dropped: tuple[ShownPatch, ...]


class ShownHeadroom(Versioned, frozen=True, kw_only=True):
    """From where on a route counts less as its limits fill up."""

    ramp_start: float
    floor: float


class ShownThresholds(Versioned, frozen=True, kw_only=True):
    """When something is cut off, rests, counts less, or is tried no more; of all combos."""

    breaker: BreakerPolicy
    cooldown: CooldownPolicy
    penalty: PenaltyPolicy
    bench: BenchPolicy
    degraded: DegradedPolicy
    peek: PeekPolicy
    attempts: AttemptPolicy


class ChainPlace(Closed, frozen=True, kw_only=True):
    """A place of a chain."""

    route: str
    provider: str
    model: str
    name: str
    priority: int
    enabled: bool
    model_enabled: bool
    speed_rank: int | None
    speed_rank_measured: int | None
    keys: tuple[str, ...]


class Chain(Versioned, frozen=True, kw_only=True):
    """The chain of a combo, in order."""

    combo: str
    items: tuple[ChainPlace, ...]


class ShownRouting(Versioned, frozen=True, kw_only=True):
    """How a combo ranks; `scores` have further fields, one for each factor that is weighed."""

    combo: str
    family: Literal["bandit", "classic"]
    strategy: str
    strategies: tuple[str, ...]
    weights: dict[str, float] | None
    custom_weights: dict[str, float] | None
    explore_enabled: bool
    explore_unmeasured: float
    key_selection: str
    peak_hours: PeakHours
    peak_adjusted: bool
    cooldown_ceiling_ms: int | None
    task_weight_share: float
    scores: tuple["RouteScore", ...] | None


class RouteScore(msgspec.Struct, frozen=True, kw_only=True):
    """How a route stands; `rank` is null where it takes no part, and `excluded` says why."""

    rank: int | None
    route: str
    provider: str
    model: str
    name: str
    enabled: bool
    model_enabled: bool
    excluded: str | None
    reliability: float
    speed: float
    intelligence: float
    total_requests: float
    score: float | None


class MonthOfRoute(Closed, frozen=True, kw_only=True):
    """What the keys of a route used of their tokens of this month (UTC)."""

    route: str
    provider: str
    model: str
    name: str
    keys: int
    used_tokens: int
    budget_tokens: int | None
    remaining: float | None
    enabled: bool


class Months(Versioned, frozen=True, kw_only=True):
    """The same of all routes of a combo."""

    items: tuple[MonthOfRoute, ...]
    used_tokens: int
    budget_tokens: int


class ShownCache(CacheSettings, frozen=True, kw_only=True):
    """The response cache: its settings, and what it did; null while its Redis is away."""

    config_version: int
    warnings: tuple[str, ...] = ()
    reachable: bool
    hit_rate: float | None
    saved_tokens: int | None
    entries: int | None
    doomed: int | None
    stored_bytes: int | None
    hits: int | None
    misses: int | None
    saved_prompt_tokens: int | None
    saved_completion_tokens: int | None
    stored: int | None
    evicted: int | None
    expired: int | None
    removed: int | None
