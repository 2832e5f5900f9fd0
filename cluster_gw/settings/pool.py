"""The sections that describe the pool: providers, keys, models, combos and clients."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cluster_gw.canonical.request import Dialect
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.outcome.gate import ApplyTo
from cluster_gw.settings.secret import Secret
from cluster_gw.settings.sections import (
    AuthSettings,
    CacheSettings,
    Count,
    Name,
    PositiveSeconds,
    Ratio,
    RedisSettings,
    RoutingSettings,
    Section,
    ServerSettings,
    TelemetrySettings,
    UnifySettings,
)

Id = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
ComboName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}$")]
Score = Annotated[float, Meta(ge=0.0, le=1e9)]


class TimeoutSettings(Section, frozen=True, kw_only=True):
    """Phase timeouts a provider sets itself; None leaves the preset's or the common value."""

    connect_s: PositiveSeconds | None = None
    first_byte_s: PositiveSeconds | None = None
    stall_s: PositiveSeconds | None = None
    total_s: PositiveSeconds | None = None


class ProviderSettings(Section, frozen=True, kw_only=True):
    """An upstream account host; None leaves what the preset says.

    Attributes:
        preset: name of a bundled provider.
        limits: bounds of each of its keys over all models; a key's own bounds win.
        day_reset: `rolling`, or the zone in which the provider's day ends.
    """

    preset: str | None = None
    dialect: Dialect | None = None
    base_url: str | None = None
    keyless: bool | None = None
    limits: Limits = Limits()
    day_reset: str | None = None
    timeouts: TimeoutSettings = TimeoutSettings()


class KeySettings(Section, frozen=True, kw_only=True):
    """One provider credential.

    Attributes:
        models: upstream models it may serve; None means all.
        account: keys of one account share their limits' slot; None means a key of its own.
        base_url: overrides the provider's, for relays.
    """

    id: Id
    provider: str
    secret: Secret
    models: tuple[Name, ...] | None = None
    account: Id | None = None
    base_url: str | None = None
    limits: Limits = Limits()


class Price(Section, frozen=True, kw_only=True):
    """USD per million tokens; None is not known."""

    input: Score | None = None
    output: Score | None = None


class ModelSettings(Section, frozen=True, kw_only=True):
    """One model of one provider.

    Attributes:
        limits: bounds of this model on each key.
        monthly_tokens: tokens the provider gives away each month and key.
        weight: multiplies the score of a scoring strategy; 0 never wins.
    """

    provider: str
    model: Name
    name: str | None = None
    tier: Literal["Frontier", "Large", "Medium", "Small", "other"] | None = None
    intelligence_rank: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    speed_rank: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    context_window: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    tools: bool = True
    vision: bool = False
    limits: Limits = Limits()
    monthly_tokens: Annotated[int, Meta(ge=0, le=10**15)] | None = None
    price: Price = Price()
    quality_hint: Ratio | None = None
    weight: Annotated[float, Meta(ge=0.0, le=2.0)] = 1.0


class MemberSettings(Section, frozen=True, kw_only=True):
    """One place of a combo."""

    route: str
    enabled: bool = True


class StickySettings(Section, frozen=True, kw_only=True):
    """How a conversation stays where it is; None leaves the default of the combo's family."""

    enabled: bool | None = None
    scope: Literal["run", "session"] | None = None
    mode: Literal["hard", "prefer"] | None = None
    ttl_s: PositiveSeconds = 1800.0
    min_headroom: Ratio = 0.1


class StrategyOptions(Section, frozen=True, kw_only=True):
    """Options of the scoring strategies; `sticky` is an alias of the combo's `sticky.enabled`."""

    lkgp_boost: Ratio = 0.10
    exploration: Ratio = 0.03
    weights: dict[str, Score] = msgspec.field(default_factory=dict)
    sticky: bool | None = None


class ResponseSettings(Section, frozen=True, kw_only=True):
    """What an answer must have; None leaves the default of the combo's family."""

    reject_empty: bool | None = None
    require_terminal: bool = False
    min_content_length: Count = 0
    forbidden_substrings: tuple[Name, ...] = ()
    apply_to: ApplyTo = ApplyTo.BOTH


class ComboSettings(Section, frozen=True, kw_only=True):
    """A named chain of routes.

    Attributes:
        members: route ids in declared order, or `all` routes.
        profile: whether clients see it as a profile of the default combo.
    """

    id: ComboName
    family: Literal["bandit", "classic"] = "bandit"
    strategy: str = "priority"
    weights: dict[str, Score] | None = None
    members: Literal["all"] | tuple[str | MemberSettings, ...] = "all"
    sticky: StickySettings = StickySettings()
    strategy_options: StrategyOptions = StrategyOptions()
    response: ResponseSettings = ResponseSettings()
    profile: bool = False


class ClientLimits(Section, frozen=True, kw_only=True):
    """Bounds of one client over everything it calls; None is not limited."""

    rpm: Count | None = None
    tpm: Count | None = None
    concurrency: Count | None = None
    monthly_tokens: Annotated[int, Meta(ge=0, le=10**15)] | None = None
    monthly_usd: Score | None = None


class ClientSettings(Section, frozen=True, kw_only=True):
    """An app with its own key; only the SHA-256 of the key is known here.

    Attributes:
        combos: combo ids it may name, or `*` for everything including routes.
        detail: whether it may ask for rankings and attempts.
    """

    id: Id
    key_sha256: Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{64}$")]
    limits: ClientLimits = ClientLimits()
    combos: tuple[Name, ...] = ("*",)
    detail: bool = False


class Settings(Section, frozen=True, kw_only=True):
    """The whole configuration, checked; every reference in it resolves."""

    server: ServerSettings = ServerSettings()
    redis: RedisSettings = RedisSettings()
    providers: dict[Id, ProviderSettings] = msgspec.field(default_factory=dict)
    keys: tuple[KeySettings, ...] = ()
    models: tuple[ModelSettings, ...] = ()
    combos: tuple[ComboSettings, ...] = (ComboSettings(id="auto"),)
    default_combo: ComboName = "auto"
    unknown_model: Literal["error", "default"] = "error"
    unify: UnifySettings = UnifySettings()
    routing: RoutingSettings = RoutingSettings()
    cache: CacheSettings = CacheSettings()
    clients: tuple[ClientSettings, ...] = ()
    auth: AuthSettings = AuthSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
