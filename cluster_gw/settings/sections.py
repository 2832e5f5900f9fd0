"""The sections of the configuration that describe the gateway itself.

Ranges stand in the annotations and are read by the checker; `bounds.py` holds those of the value
types that belong to lower floors.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cluster_gw.core.outcome.peek import PeekPolicy
from cluster_gw.core.outcome.retry import AttemptPolicy
from cluster_gw.settings.secret import Secret

Port = Annotated[int, Meta(ge=1, le=65_535)]
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]
PositiveCount = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Ratio = Annotated[float, Meta(ge=0.0, le=1.0)]
Hour = Annotated[int, Meta(ge=0, le=23)]
Seconds = Annotated[float, Meta(ge=0.0, le=31_536_000.0)]
PositiveSeconds = Annotated[float, Meta(gt=0.0, le=31_536_000.0)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the configuration; unknown fields are refused."""


class ServerSettings(Section, frozen=True, kw_only=True):
    """Listening addresses and bounds of the data plane and the operations plane."""

    host: Name = "127.0.0.1"
    port: Port = 8080
    admin_host: Name = "127.0.0.1"
    admin_port: Port = 8081
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    max_body_mb: Annotated[int, Meta(ge=1, le=1024)] = 25
    max_head_kb: Annotated[int, Meta(ge=1, le=1024)] = 32
    drain_s: Annotated[float, Meta(ge=0.0, le=3600.0)] = 120.0


class RedisSettings(Section, frozen=True, kw_only=True):
    """Where the shared state lives.

    Attributes:
        url: `embedded:`, `redis://`, `rediss://` or `unix://`; it may hold a password.
        data_dir: folder of the embedded server; None means `./cluster-gw-data`.
        cache_url: another Redis for the response cache, which may evict.
        prefix: start of every key name.
        when_lost: what a worker does when it cannot reach Redis.
    """

    url: Secret = Secret("embedded:")
    data_dir: Name | None = None
    cache_url: Secret | None = None
    prefix: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,32}$")] = "gw1"
    when_lost: Literal["share", "closed", "open"] = "share"


class UnifyMerge(Section, frozen=True, kw_only=True):
    """Models that count as one group although their names differ."""

    into: Name
    keys: tuple[Name, ...]


class UnifySplit(Section, frozen=True, kw_only=True):
    """A model that leaves the group its name would put it in."""

    member: Name
    group_key: Name | None = None


class UnifySettings(Section, frozen=True, kw_only=True):
    """Which routes are the same model under several names."""

    enabled: bool = True
    merges: tuple[UnifyMerge, ...] = ()
    splits: tuple[UnifySplit, ...] = ()


class HeadroomSettings(Section, frozen=True, kw_only=True):
    """How scarce quota lowers a score; ratios of what remains."""

    ramp_start: Ratio = 0.2
    floor: Ratio = 0.1


class PeakHours(Section, frozen=True, kw_only=True):
    """Hours in which speed counts less; the start is inclusive, the end exclusive."""

    enabled: bool = False
    start_hour: Hour = 18
    end_hour: Hour = 6
    timezone: Name = "UTC"


class PriorCounts(Section, frozen=True, kw_only=True):
    """Successes and failures somebody else saw."""

    successes: Annotated[float, Meta(ge=0.0, le=1e12)] = 0.0
    failures: Annotated[float, Meta(ge=0.0, le=1e12)] = 0.0


class QueueSettings(Section, frozen=True, kw_only=True):
    """How long a request may wait for capacity; 0 means it never waits."""

    max_wait_ms: Annotated[int, Meta(ge=0, le=600_000)] = 0
    max_depth: PositiveCount = 1000


class BreakerSettings(Section, frozen=True, kw_only=True):
    """When a target is cut off after failures in a row."""

    threshold: PositiveCount = 3
    cooldown_ms: Annotated[int, Meta(ge=1, le=86_400_000)] = 30_000
    count_rate_limit: bool = False


class CooldownSettings(Section, frozen=True, kw_only=True):
    """Rests after failures; the ceiling never shortens a time the provider stated."""

    transient_s: Annotated[float, Meta(ge=0.0, le=86_400.0)] = 0.0
    ceiling_s: Annotated[float, Meta(ge=60.0, le=86_400.0)] | None = None


class PenaltySettings(Section, frozen=True, kw_only=True):
    """Points a model collects; they decay by one each `decay_s`."""

    rate_limit: Annotated[float, Meta(ge=0.0, le=1000.0)] = 3.0
    failure: Annotated[float, Meta(ge=0.0, le=1000.0)] = 1.0
    success: Annotated[float, Meta(ge=-1000.0, le=0.0)] = -1.0
    decay_s: PositiveSeconds = 120.0
    max: Annotated[float, Meta(gt=0.0, le=1000.0)] = 10.0


class BenchSettings(Section, frozen=True, kw_only=True):
    """When a model rests on all its keys."""

    failures: PositiveCount = 3
    within_s: PositiveSeconds = 900.0
    for_s: PositiveSeconds = 600.0


class RoutingSettings(Section, frozen=True, kw_only=True):
    """Everything that tunes the choice of a target and the loop over targets."""

    key_selection: Literal["auto", "least-remaining"] = "auto"
    headroom: HeadroomSettings = HeadroomSettings()
    explore_unmeasured: Ratio = 0.0
    affinity_hash: Literal["rendezvous", "fnv-modulo"] = "rendezvous"
    task_weight_share: Ratio = 0.3
    peak_hours: PeakHours = PeakHours()
    community_prior: dict[Name, PriorCounts] | None = None
    attempts: AttemptPolicy = AttemptPolicy()
    queue: QueueSettings = QueueSettings()
    peek: PeekPolicy = PeekPolicy()
    breaker: BreakerSettings = BreakerSettings()
    cooldown: CooldownSettings = CooldownSettings()
    penalty: PenaltySettings = PenaltySettings()
    bench: BenchSettings = BenchSettings()


class CacheSettings(Section, frozen=True, kw_only=True):
    """The response cache; off unless asked for."""

    enabled: bool = False
    ttl_s: PositiveSeconds = 3600.0
    max_temperature: Annotated[float, Meta(ge=0.0, le=2.0)] = 1.0
    max_entries: PositiveCount = 5000
    max_entry_mb: Annotated[float, Meta(gt=0.0, le=512.0)] = 2.0
    scope: Literal["client", "shared"] = "client"


class AuthSettings(Section, frozen=True, kw_only=True):
    """Whether clients need a key; `none` is refused on a host others can reach."""

    mode: Literal["keys", "none"] = "keys"


class TelemetrySettings(Section, frozen=True, kw_only=True):
    """Logs, metrics and how much of a fallback is shown to everybody."""

    log: Literal["json", "text"] = "json"
    metrics: bool = True
    otlp_endpoint: Name | None = None
    fallback_detail: bool = False
