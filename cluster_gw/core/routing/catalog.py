"""What can be routed to: routes, keys, combos and groups; values that never change.

How a client's `model` becomes one of them is in `resolution.py`.
"""

from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import Final

import msgspec

from cluster_gw.canonical.embedding import EmbeddingModel
from cluster_gw.canonical.request import Dialect
from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.price import FREE, Price
from cluster_gw.core.limits.windows import ROLLING, Limits
from cluster_gw.core.outcome.gate import GatePolicy
from cluster_gw.core.routing.presets import NOT_SCORED, Scoring
from cluster_gw.core.routing.prior import NO_PRIOR, Prior
from cluster_gw.core.routing.sticky_policy import NOT_STICKY, StickyPolicy
from cluster_gw.units import ComboId, KeyId, RouteId

EPOCH_BYTES: Final = 4


class PhaseTimeouts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of the phases of one upstream call, seconds, each above 0."""

    connect_s: float = 5.0
    write_s: float = 60.0
    first_byte_s: float = 60.0
    stall_s: float = 90.0
    total_s: float = 600.0


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One provider credential, without the secret (the pipeline holds secrets apart).

    Attributes:
        account: keys of one account share its Redis slot; the key id when none was configured.
        models: upstream models this key may serve; None means all.
        limits: bounds of this key over all its models.
        caps: what its provider caps over all its models.
        account_limits: bounds of its account over all keys, the same for each of them.
        base_url: overrides the provider's, for relays.
    """

    id: KeyId
    provider: str
    account: str
    models: frozenset[str] | None = None
    limits: Limits = Limits()
    caps: Caps = Caps()
    account_limits: Limits = Limits()
    base_url: str | None = None


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Provider, upstream model and endpoint: the unit of ranking.

    Attributes:
        weight: multiplies the score of a strategy that weighs routes; 0 never wins.
        enabled: anything may be routed to it; it has no name where that is not so.
        quality_hint: quality somebody measured, 0 to 1; None where nobody did.
        intelligence: tier and rank in one number (`axes.intelligence_composite`).
        speed_rank: place among all models, 1 is the fastest; None where the operator gave none.
        monthly_tokens: what one key is given each month (UTC); None where nobody knows.
        prior: what others saw of it.
        scoped_keys: of its provider's keys those that serve other models only.
        endpoint: handle of the relay it is reached through; empty for the provider's own address.
        is_priced: somebody said what it costs, 0 among it.
        is_cost_known: and all of it, so that what a call cost can be told.
        embedding: it makes vectors, and no chat may be routed to it; None for all others.
    """

    id: RouteId
    provider: str
    model: str
    dialect: Dialect
    base_url: str
    name: str = ""
    keyless: bool = False
    limits: Limits = Limits()
    token_weight: float = 1.0
    day_reset: str = ROLLING
    timeouts: PhaseTimeouts = PhaseTimeouts()
    quirks: frozenset[str] = frozenset()
    context_window: int | None = None
    tools: bool = True
    vision: bool = False
    weight: float = 1.0
    enabled: bool = True
    quality_hint: float | None = None
    intelligence: float = 0.0
    speed_rank: int | None = None
    monthly_tokens: int | None = None
    prior: Prior = NO_PRIOR
    scoped_keys: int = 0
    endpoint: str = ""
    price: Price = FREE
    is_priced: bool = False
    is_cost_known: bool = False
    embedding: EmbeddingModel | None = None
    keys: tuple[Key, ...] = ()

    @property
    def host(self) -> str:
        """What fails as a whole: its provider, or its relay alone."""
        return f"{self.provider}@{self.endpoint}" if self.endpoint else self.provider

    @property
    def subject(self) -> str:
        """The name its limits, health and statistics are kept under: `model` or `model@endpoint`.

        Two relays of one model have nothing in common: neither limits nor failures.
        """
        return f"{self.model}@{self.endpoint}" if self.endpoint else self.model

    def is_one_of(self, models: frozenset[tuple[str, str]]) -> bool:
        """Whether its provider and subject are among some."""
        return bool(models) and (self.provider, self.subject) in models


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One place of a combo."""

    route: RouteId
    enabled: bool = True


class Combo(msgspec.Struct, frozen=True, kw_only=True):
    """A named chain of routes that clients select as `model`.

    Attributes:
        is_profile: clients may name it as `auto:ID`, too, and it may have no members.
        epoch: how often what is remembered of it was given up.
    """

    id: ComboId
    family: str
    strategy: str
    members: tuple[Member, ...]
    gate: GatePolicy
    scoring: Scoring = NOT_SCORED
    sticky: StickyPolicy = NOT_STICKY
    is_profile: bool = False
    epoch: int = 0


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Routes that are the same model.

    Attributes:
        slug: what clients ask for; unique.
        label: for people.
        members: in declared order.
        is_named: the operator put it together, so that its slug is as good as a model's own id.
    """

    slug: str
    label: str
    members: tuple[RouteId, ...]
    is_named: bool = False


class Candidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A route that may serve, at its declared place (0-based)."""

    route: Route
    position: int
    match_tier: int = 0


class Needs(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Capabilities a route must have."""

    tools: bool
    vision: bool
    format: bool


class ExclusionCode(StrEnum):
    """Why a route is absent; a subset, by value, of the skip codes of the trace."""

    DISABLED = "disabled"
    NOT_WANTED = "not_wanted"  # the request leaves its provider out
    KEY_SCOPE = "key_scope"  # keys exist, none may serve this model
    NO_KEY = "no_key"
    NO_TOOLS = "no_tools"
    NO_VISION = "no_vision"
    NO_FORMAT = "no_format"
    NO_DIMENSIONS = "no_dimensions"  # vectors of that length
    NO_TOKEN_INPUT = "no_token_input"  # noqa: S105 - a name, no secret
    CONTEXT_WINDOW = "context_window"
    TOO_LARGE = "too_large"  # the demand alone exceeds a token limit


class Exclusion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An absent route and why; `retry_at_ms` only when time alone can bring it back."""

    route: Route
    code: ExclusionCode
    detail: str
    retry_at_ms: int | None = None


class Narrowed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is left of a combo's candidates for requests of the same needs and about the same size.

    Attributes:
        eligible: those that can serve.
        excluded: the others, as they were told of the first of these requests.
        rejected: the others, where a reason names the size of the request, so that they have to be
            told again.
    """

    eligible: tuple[Candidate, ...]
    excluded: tuple[Exclusion, ...] = ()
    rejected: tuple[Candidate, ...] = ()


class Resolved(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What a client's `model` stands for; made once for each name.

    Attributes:
        routes: enabled members in declared order; disabled ones are in `disabled`.
        tiers: how well each of them matches what was asked for, 0 the best; empty when all do.
        left_out: members that this request does not want.
        is_choice: the name stands for several routes, of each of which a client may be allowed or
            not: an alias, a group or a model behind several relays.
        is_kept: other requests come with this very value, so that what is worked out of it is kept.
        epoch: part of the name of what is remembered (`epoch_of`).
    """

    combo: ComboId
    family: str
    strategy: str
    gate: GatePolicy
    routes: tuple[Route, ...]
    tiers: tuple[int, ...] = ()
    disabled: tuple[Route, ...] = ()
    left_out: tuple[Route, ...] = ()
    is_choice: bool = False
    is_kept: bool = True
    scoring: Scoring = NOT_SCORED
    sticky: StickyPolicy = NOT_STICKY
    epoch: str = ""

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The enabled members at their declared places."""
        tiers = self.tiers or (0,) * len(self.routes)
        return tuple(
            Candidate(route=route, position=place, match_tier=tier)
            for place, (route, tier) in enumerate(zip(self.routes, tiers, strict=True))
        )

    @cached_property
    def scoped(self) -> dict[frozenset[str], "Resolved | None"]:
        """What is left of a choice for clients of a scope; filled as it is asked for."""
        return {}

    @cached_property
    def is_sticky(self) -> bool:
        """Whether runs or sessions are kept on a route; with one alone there is nothing to keep."""
        return self.sticky.enabled and len(self.routes) > 1

    @cached_property
    def narrowed(self) -> dict[tuple[Needs, int], Narrowed]:
        """Who could serve requests of some needs and size; filled as it is asked for."""
        return {}

    def keeps(self, candidates: tuple[Candidate, ...]) -> bool:
        """Whether these very candidates come again with other requests."""
        return self.is_kept and (
            candidates is self.candidates
            or any(candidates is narrowed.eligible for narrowed in self.narrowed.values())
        )

    @cached_property
    def windows(self) -> tuple[int, ...]:
        """The known context windows, the smallest first."""
        return tuple(
            sorted({r.context_window for r in self.routes if r.context_window is not None})
        )

    @cached_property
    def token_bounds(self) -> tuple[int, ...]:
        """Sizes of requests, in tokens, above each of which some candidate is too small."""
        bounds = {
            bound
            for route in self.routes
            for bound in (route.context_window, route.limits.tpm)
            if bound is not None
        }
        return tuple(sorted(bounds))


def epoch_of(family: str, strategy: str, routes: Iterable[Route], count: int = 0) -> str:
    """Name what is remembered of a chain of routes: that of another chain does not count.

    Args:
        family: of its strategy.
        strategy: that orders them.
        routes: those that take part, in declared order.
        count: how often it was given up besides, so that there and back is not the same.
    """
    named = "\n".join([f"{family}:{strategy}:{count}", *(route.id for route in routes)])
    return blake2b(named.encode(), digest_size=EPOCH_BYTES).hexdigest()
