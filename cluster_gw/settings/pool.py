"""The sections that describe the pool: providers, keys, models and combos."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cluster_gw.canonical.request import Dialect
from cluster_gw.core.limits.caps import HEAVIEST, Caps
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.outcome.gate import ApplyTo
from cluster_gw.settings.client import ClientSettings
from cluster_gw.settings.secret import Secret
from cluster_gw.settings.sections import (
    MAX_ENTRIES,
    AuthSettings,
    CacheSettings,
    Count,
    Id,
    Name,
    PositiveCount,
    PositiveSeconds,
    Ratio,
    RedisSettings,
    RoutingSettings,
    Score,
    Section,
    ServerSettings,
    SessionSettings,
    UnifySettings,
    UpstreamSettings,
)
from cluster_gw.settings.strategies import DEFAULT_STRATEGIES
from cluster_gw.settings.telemetry import TelemetrySettings

ComboName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}$")]
Dimensions = Annotated[int, Meta(ge=1, le=65_536)]


class TimeoutSettings(Section, frozen=True, kw_only=True):
    """Phase timeouts a provider sets itself; None leaves the preset's or the common value.

    Attributes:
        connect_s: until the connection stands, its proxy and TLS with it.
        write_s: until a request of 64 KB or more is taken; smaller ones count as taken.
        first_byte_s: until the first byte of a stream; any other answer, which comes when it is
            whole, has the longer of this and `stall_s`.
        stall_s: between two bytes of it.
        total_s: for the whole call.
    """

    connect_s: PositiveSeconds | None = None
    write_s: PositiveSeconds | None = None
    first_byte_s: PositiveSeconds | None = None
    stall_s: PositiveSeconds | None = None
    total_s: PositiveSeconds | None = None


class AccountSettings(Section, frozen=True, kw_only=True):
    """An account at a provider that several keys share.

    Attributes:
        limits: bounds of the account over all its keys and models.
    """

    limits: Limits = Limits()


class ProviderSettings(Section, frozen=True, kw_only=True):
    """An upstream account host; None leaves what the preset says.

    Attributes:
        preset: name of a bundled provider.
        dialect: API it speaks.
        base_url: where it is, up to and including `/v1`; without credentials.
        keyless: whether it is called without a credential.
        limits: bounds of each of its keys over all models; a key's own bounds win.
        caps: what the provider caps over all models of each key; a key's own caps win.
        accounts: accounts with limits of their own, by the name that keys give as `account`.
        day_reset: `rolling`, or the zone in which the provider's day ends.
        timeouts: bounds of the phases of a call.
    """

    preset: str | None = None
    dialect: Dialect | None = None
    base_url: str | None = None
    keyless: bool | None = None
    limits: Limits = Limits()
    caps: Caps = Caps()
    accounts: dict[Id, AccountSettings] = msgspec.field(default_factory=dict)
    day_reset: str | None = None
    timeouts: TimeoutSettings = TimeoutSettings()


class KeySettings(Section, frozen=True, kw_only=True):
    """One provider credential.

    Attributes:
        id: its name in logs, metrics and Redis.
        provider: whose credential it is.
        secret: the credential: `env:NAME`, `file:/path` or the text itself.
        models: upstream models it may serve; unset means all.
        account: keys of one account share what `providers.<name>.accounts` bounds; unset means
            that the key is an account of its own, by its id.
        base_url: overrides the provider's, for relays: each address is a route of its own,
            `provider/model@host-path`, scored and limited apart.
        proxy: of its own calls, as `upstream.proxy`, whatever `upstream.no_proxy` says; `none` for
            none; unset means the common one.
        limits: its own bounds over all models.
        caps: its own caps over all models.
        enabled: whether it is used.
    """

    id: Id
    provider: str
    secret: Secret
    models: Annotated[tuple[Name, ...], Meta(max_length=MAX_ENTRIES)] | None = None
    account: Id | None = None
    base_url: str | None = None
    proxy: Secret | None = None
    limits: Limits = Limits()
    caps: Caps = Caps()
    enabled: bool = True


class Price(Section, frozen=True, kw_only=True):
    """USD per million tokens; None is not known.

    Attributes:
        input: for the prompt.
        output: for the answer.
    """

    input: Score | None = None
    output: Score | None = None


class EmbeddingSettings(Section, frozen=True, kw_only=True):
    """What a model that makes vectors does; None is not known and never refused.

    Attributes:
        family: models of one family make the same vectors and stand in for each other; unset means
            the model's own name.
        dimensions: length of its vectors; an answer of another length is a failure.
        sizes: shorter lengths that `dimensions` of a request may ask for; an empty list is none.
        max_input_tokens: of each input.
        max_inputs: of a request; unset means 100 at a provider of the dialect `gemini`.
        tokens: whether inputs may be token numbers; unset means yes but for the dialect `gemini`.
    """

    family: Name | None = None
    dimensions: Dimensions | None = None
    sizes: Annotated[tuple[Dimensions, ...], Meta(max_length=MAX_ENTRIES)] | None = None
    max_input_tokens: PositiveCount | None = None
    max_inputs: PositiveCount | None = None
    tokens: bool | None = None


class ModelSettings(Section, frozen=True, kw_only=True):
    """One model of one provider.

    Attributes:
        provider: who serves it; with `model` it makes the route id `provider/model`.
        model: its name at the provider.
        name: its name for people; unset means `model`.
        tier: coarse class.
        intelligence_rank: place among all models, 1 is the best; unset means the lower median.
        speed_rank: the same for speed.
        context_window: tokens of prompt and answer together; unset means unknown, never refused.
        tools: whether it can call tools.
        vision: whether it takes images.
        limits: bounds of this model on each key.
        token_weight: how many tokens of `caps.tpd` one of its tokens uses; unset means 1, or what
            the preset says of such models.
        monthly_tokens: tokens the provider gives away each month and key, or its label for them
            (`~15M`, `~50-100M`: the upper bound); unset, 0 or a label without a number and a unit
            means no opinion.
        price: what it costs.
        quality_hint: quality somebody measured.
        weight: multiplies the score of a scoring strategy; 0 never wins.
        enabled: whether anything is routed to it, also where it is asked for by name.
        embedding: given, also as `{}`, it makes vectors: `/v1/embeddings` asks it and no chat does.
        mending: whether its answers are put right as `routing.mending` says.
        reasoning_echo: whether it wants to see what it thought beside its earlier calls of tools
            (`reasoning_content`, as DeepSeek and Kimi do); unset means what the preset says.
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
    token_weight: Annotated[float, Meta(ge=0.0, le=HEAVIEST)] | None = None
    monthly_tokens: Annotated[int, Meta(ge=0, le=10**15)] | None = None
    price: Price = Price()
    quality_hint: Ratio | None = None
    weight: Annotated[float, Meta(ge=0.0, le=2.0)] = 1.0
    enabled: bool = True
    embedding: EmbeddingSettings | None = None
    mending: bool = True
    reasoning_echo: bool | None = None


class MemberSettings(Section, frozen=True, kw_only=True):
    """One place of a combo.

    Attributes:
        route: `provider/model`, which of a model behind relays means all of them, or
            `provider/model@endpoint` for one of them.
        enabled: whether it takes part.
    """

    route: str
    enabled: bool = True


class StickySettings(Section, frozen=True, kw_only=True):
    """How a conversation stays where it is; None leaves the default of the combo's family.

    Attributes:
        enabled: whether it does.
        scope: what belongs together: a run or a session.
        mode: whether the place binds or is preferred.
        ttl_s: how long it is kept after the last request.
        min_headroom: share of a limit below which it is given up.
    """

    enabled: bool | None = None
    scope: Literal["run", "session"] | None = None
    mode: Literal["hard", "prefer"] | None = None
    ttl_s: PositiveSeconds = 1800.0
    min_headroom: Ratio = 0.1


class StrategyOptions(Section, frozen=True, kw_only=True):
    """Options of the scoring strategies; `sticky` is an alias of the combo's `sticky.enabled`.

    Attributes:
        lkgp_boost: bonus of the route that answered last.
        exploration: share of requests that try another than the best.
        weights: weight of each factor, by name; of `bandit` the same as the combo's `weights`.
        sticky: the same as the combo's `sticky.enabled`.
    """

    lkgp_boost: Ratio = 0.10
    exploration: Ratio = 0.03
    weights: dict[str, Score] = msgspec.field(default_factory=dict)
    sticky: bool | None = None


class ResponseSettings(Section, frozen=True, kw_only=True):
    """What an answer must have; None leaves the default of the combo's family.

    Attributes:
        reject_empty: whether an answer without content is a failure.
        require_terminal: whether an answer without its end is one.
        min_content_length: shortest content, in bytes.
        forbidden_substrings: texts no answer may contain.
        apply_to: which answers are looked at.
    """

    reject_empty: bool | None = None
    require_terminal: bool = False
    min_content_length: Count = 0
    forbidden_substrings: Annotated[tuple[Name, ...], Meta(max_length=MAX_ENTRIES)] = ()
    apply_to: ApplyTo = ApplyTo.BOTH


Members = Literal["all"] | Annotated[tuple[str | MemberSettings, ...], Meta(max_length=MAX_ENTRIES)]


class ComboSettings(Section, frozen=True, kw_only=True):
    """A named chain of routes.

    Attributes:
        id: what clients send as `model`.
        family: which generation of strategies it uses.
        strategy: how its members are ranked: of `bandit` `balanced`, `smartest`, `fastest`,
            `reliable`, `custom` or `priority`, of `classic` `priority`, `round-robin`,
            `prefix-affinity`, `smart`, `quality`, `fast`, `cheap`, `reliable`, `weighted`, `lkgp`
            or `p2c`; unset means `balanced`, and for `classic` `priority`.
        weights: weight of each factor (`reliability`, `speed`, `intelligence`) of `custom`, by
            name; they are divided by their sum, and unset means those of `balanced`.
        members: route ids in declared order, or `all` routes.
        sticky: how a conversation stays where it is.
        strategy_options: options of the scoring strategies.
        response: what an answer must have.
        profile: whether clients may name it as `auto:ID`, too, and all its members may be switched
            off; its id has at most 20 letters, digits, `-` or `_`.
        epoch: another number forgets where runs and sessions are, which route answered last and
            whose turn it is; changes through the admin API count by themselves.
    """

    id: ComboName
    family: Literal["bandit", "classic"] = "bandit"
    strategy: str | None = None
    weights: dict[str, Score] | None = None
    members: Members = "all"
    sticky: StickySettings = StickySettings()
    strategy_options: StrategyOptions = StrategyOptions()
    response: ResponseSettings = ResponseSettings()
    profile: bool = False
    epoch: Count = 0

    @property
    def strategy_name(self) -> str:
        """The strategy, or the default of the family."""
        return self.strategy or DEFAULT_STRATEGIES[self.family]

    @property
    def own_weights(self) -> dict[str, float]:
        """The weights the operator gave, wherever they stand; empty for the strategy's own."""
        return self.weights or self.strategy_options.weights


class Settings(Section, frozen=True, kw_only=True):
    """The whole configuration, checked; every reference in it resolves.

    Attributes:
        server: addresses, worker processes, bounds.
        redis: where the shared state lives.
        providers: upstream hosts, by name.
        keys: credentials at providers.
        models: models of providers; a preset brings its own when none is declared for its provider.
        catalog: what presets bring along, in place of docs/free-tier.yaml: rows as in `models`
            whose `provider` is a preset, or `file:/path` of a document with such `models`.
        combos: what clients select as `model`.
        default_combo: combo of requests that name none or `auto`.
        unknown_model: whether an unknown name is a 404 or goes to the default combo.
        unify: which routes are the same model under several names.
        routing: the choice of a target and the loop over targets.
        upstream: how providers are reached.
        cache: the response cache.
        clients: apps with keys of their own.
        auth: whether clients need a key.
        telemetry: logs and metrics.
        sessions: what is kept of conversations for their next requests.
    """

    server: ServerSettings = ServerSettings()
    redis: RedisSettings = RedisSettings()
    providers: dict[Id, ProviderSettings] = msgspec.field(default_factory=dict)
    keys: tuple[KeySettings, ...] = ()
    models: tuple[ModelSettings, ...] = ()
    catalog: Annotated[tuple[ModelSettings, ...], Meta(max_length=MAX_ENTRIES)] | None = None
    combos: tuple[ComboSettings, ...] = (ComboSettings(id="auto"),)
    default_combo: ComboName = "auto"
    unknown_model: Literal["error", "default"] = "error"
    unify: UnifySettings = UnifySettings()
    routing: RoutingSettings = RoutingSettings()
    upstream: UpstreamSettings = UpstreamSettings()
    cache: CacheSettings = CacheSettings()
    clients: tuple[ClientSettings, ...] = ()
    auth: AuthSettings = AuthSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    sessions: SessionSettings = SessionSettings()
