"""The part of the configuration that routing works with: routes, keys, combos; secrets apart."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from cluster_gw.core.limits.caps import overlay_caps
from cluster_gw.core.limits.price import Price
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.outcome.gate import GatePolicy
from cluster_gw.core.routing.aliases import ALIASES
from cluster_gw.core.routing.axes import (
    TIERS,
    USUAL_RANK,
    USUAL_TIER,
    intelligence_composite,
    lower_median,
)
from cluster_gw.core.routing.catalog import Combo, Key, Member, PhaseTimeouts, Route
from cluster_gw.core.routing.presets import PRESETS, Tuning, build_scoring
from cluster_gw.core.routing.prior import NO_PRIOR, Prior, capped_prior
from cluster_gw.core.routing.resolution import CLAUDE_OTHERS, CLAUDE_WORDS, Catalog
from cluster_gw.core.routing.sticky_policy import RUN, SESSION, StickyPolicy
from cluster_gw.providers.quirks import AS_WRITTEN, NO_TOOLS, REASONING_ECHO
from cluster_gw.settings.bundled import ProviderFacts, overlay, provider_facts, token_weight
from cluster_gw.settings.embedding import embedding_of
from cluster_gw.settings.pool import (
    ComboSettings,
    KeySettings,
    ModelSettings,
    Settings,
)
from cluster_gw.settings.references import CUSTOM
from cluster_gw.settings.relays import (
    KEYLESS_SUFFIX,
    groups_of,
    places_of,
    relays_by_model,
    route_of,
    routes_of,
)
from cluster_gw.settings.secret import Secret
from cluster_gw.settings.sections import ClaudeNames, RoutingSettings
from cluster_gw.units import ComboId, KeyId, RouteId


def build_catalog(settings: Settings, version: int) -> Catalog:
    """Build what can be routed to, in declaration order.

    Args:
        settings: a checked configuration; its references resolve.
        version: the configuration version the catalog belongs to.
    """
    with_keys = {key.provider for key in settings.keys}
    facts = {
        name: provider_facts(provider, has_keys=name in with_keys)
        for name, provider in settings.providers.items()
    }
    keys = {name: _keys_of(name, facts[name], settings) for name in facts}
    usual, places = _usual(settings.models), places_of(settings)
    ids, relays = [place.id for place in places], relays_by_model(places)
    priors = _priors(settings, ids, relays)
    chats = [place.id for place in places if place.model.embedding is None]
    routes = {}
    for place in places:
        model = place.model
        routes[place.id] = msgspec.structs.replace(
            _route(model, facts[model.provider]),
            id=place.id,
            base_url=place.address or facts[model.provider].base_url,
            endpoint=place.endpoint,
            scoped_keys=sum(
                key.models is not None and model.model not in key.models
                for key in keys[model.provider]
            ),
            keys=tuple(key for key in keys[model.provider] if key.id in place.keys),
            intelligence=intelligence_composite(
                model.tier or usual[0], model.intelligence_rank or usual[1]
            ),
            prior=priors.get(place.id, NO_PRIOR),
        )
    combos = {
        ComboId(c.id): _combo(c, _members(c, chats, relays), settings.routing)
        for c in settings.combos
    }
    default = combos[ComboId(settings.default_combo)]
    return Catalog(
        version=version,
        routes=routes,
        combos=combos,
        default_combo=default.id,
        aliases=_aliases(default, chats, settings.routing),
        groups=groups_of(settings, places),
        unknown_model_is_default=settings.unknown_model == "default",
        claude_names=claude_names_of(settings.routing.claude_names),
    )


def claude_names_of(names: ClaudeNames) -> dict[str, str]:
    """What stands for each word of the family, and for all other names of it."""
    given = {word: getattr(names, word) or names.default for word in (*CLAUDE_WORDS, CLAUDE_OTHERS)}
    return {word: name for word, name in given.items() if name is not None}


def _priors(
    settings: Settings, routes: Collection[RouteId], relays: Mapping[str, Sequence[RouteId]]
) -> dict[str, Prior]:
    """What others saw, by route; of a model behind relays each that is not named has the same."""
    told = settings.routing.community_prior or {}
    named = {name: capped_prior(counts.successes, counts.failures) for name, counts in told.items()}
    exact = {route_of(name, routes): prior for name, prior in named.items()}
    shared = {
        route: prior
        for name, prior in named.items()
        for route in routes_of(name, routes, relays, exact)
    }
    return {name: prior for name, prior in (shared | exact).items() if name is not None}


def _aliases(
    default: Combo, routes: Sequence[RouteId], routing: RoutingSettings
) -> dict[ComboId, Combo]:
    """Ways to choose among all routes but those the default combo has switched off."""
    off = {member.route for member in default.members if not member.enabled}
    members = tuple(Member(route=route, enabled=route not in off) for route in routes)
    return {
        ComboId(name): _combo(ComboSettings(id=name, strategy=strategy), members, routing)
        for name, strategy in ALIASES.items()
    }


def secrets(settings: Settings) -> dict[KeyId, Secret]:
    """Give the credential of every key; keyless entries have none."""
    return {KeyId(key.id): key.secret for key in settings.keys}


def _usual(models: Sequence[ModelSettings]) -> tuple[str, int]:
    """Tier and rank of models that have none: the lower median of those that do."""
    chats = [m for m in models if m.embedding is None]
    tiers = lower_median([TIERS[m.tier] for m in chats if m.tier is not None and TIERS[m.tier]])
    ranks = [m.intelligence_rank for m in chats if m.intelligence_rank is not None]
    names = {step: name for name, step in TIERS.items()}
    return USUAL_TIER if tiers is None else names[tiers], lower_median(ranks) or USUAL_RANK


def _keys_of(name: str, facts: ProviderFacts, settings: Settings) -> tuple[Key, ...]:
    accounts = settings.providers[name].accounts
    pools = {account: one.limits for account, one in accounts.items()}
    declared = tuple(
        _key(key, facts, pools) for key in settings.keys if key.provider == name and key.enabled
    )
    if not facts.keyless:
        return declared
    own = KeyId(f"{name}{KEYLESS_SUFFIX}")
    keyless = Key(
        id=own,
        provider=name,
        account=own,
        limits=facts.limits,
        caps=facts.caps,
        account_limits=pools.get(own, Limits()),
    )
    return (*declared, keyless)


def _key(key: KeySettings, facts: ProviderFacts, pools: Mapping[str, Limits]) -> Key:
    account = key.account or key.id
    return Key(
        id=KeyId(key.id),
        provider=key.provider,
        account=account,
        models=None if key.models is None else frozenset(key.models),
        limits=overlay(facts.limits, key.limits),
        caps=overlay_caps(facts.caps, key.caps),
        account_limits=pools.get(account, Limits()),
        base_url=None if key.base_url is None else key.base_url.rstrip("/"),
    )


def _timeouts(model: str, facts: ProviderFacts) -> PhaseTimeouts:
    slow_s = facts.slow_models.get(model)
    if slow_s is None:
        return facts.timeouts
    return msgspec.structs.replace(facts.timeouts, first_byte_s=slow_s)


def _route(model: ModelSettings, facts: ProviderFacts) -> Route:
    return Route(
        id=RouteId(f"{model.provider}/{model.model}"),
        provider=model.provider,
        model=model.model,
        name=model.name or model.model,
        dialect=facts.dialect,
        base_url=facts.base_url,
        keyless=facts.keyless,
        limits=model.limits,
        token_weight=token_weight(model, facts),
        day_reset=facts.day_reset,
        timeouts=_timeouts(model.model, facts),
        quirks=quirks_of(model, facts),
        context_window=model.context_window,
        tools=model.tools and NO_TOOLS not in facts.quirks,
        vision=model.vision,
        weight=model.weight,
        quality_hint=model.quality_hint,
        speed_rank=model.speed_rank,
        monthly_tokens=model.monthly_tokens or None,
        price=Price(input=model.price.input or 0.0, output=model.price.output or 0.0),
        is_priced=model.price.input is not None or model.price.output is not None,
        is_cost_known=is_cost_known(model),
        enabled=model.enabled,
        embedding=embedding_of(model, facts.dialect),
    )


def is_cost_known(model: ModelSettings) -> bool:
    """Whether every token of a model has a price; vectors are no tokens."""
    price = model.price
    return price.input is not None and (price.output is not None or model.embedding is not None)


def quirks_of(model: ModelSettings, facts: ProviderFacts) -> frozenset[str]:
    """What a model does differently: as its provider, unless it says otherwise itself."""
    quirks = facts.quirks if model.mending else facts.quirks | {AS_WRITTEN}
    if model.reasoning_echo is None:
        return quirks
    echo = frozenset({REASONING_ECHO})
    return quirks | echo if model.reasoning_echo else quirks - echo


def _combo(combo: ComboSettings, members: tuple[Member, ...], routing: RoutingSettings) -> Combo:
    return Combo(
        id=ComboId(combo.id),
        family=combo.family,
        strategy=combo.strategy_name,
        members=members,
        gate=_gate(combo),
        scoring=build_scoring(
            combo.family,
            combo.strategy_name,
            combo.own_weights if combo.family == "classic" or combo.strategy_name == CUSTOM else {},
            Tuning(
                peak_hours=routing.peak_hours,
                task_share=routing.task_weight_share,
                explore_unmeasured=routing.explore_unmeasured,
                exploration=combo.strategy_options.exploration,
                lkgp_boost=combo.strategy_options.lkgp_boost,
                is_fnv=routing.affinity_hash == "fnv-modulo",
            ),
        ),
        sticky=_sticky(combo),
        is_profile=combo.profile,
        epoch=combo.epoch,
    )


def _members(
    combo: ComboSettings, routes: Collection[RouteId], relays: Mapping[str, Sequence[RouteId]]
) -> tuple[Member, ...]:
    """Give the places of a combo; a model behind relays has one for each that has none of its own.

    The name of such a model stands for all of them, so that no key is left out unseen.
    """
    if isinstance(combo.members, str):
        return tuple(Member(route=route) for route in routes)
    declared = [
        (member, True) if isinstance(member, str) else (member.route, member.enabled)
        for member in combo.members
    ]
    own = {route_of(name, routes) for name, _ in declared}
    return tuple(
        Member(route=RouteId(route), enabled=enabled)
        for name, enabled in declared
        for route in routes_of(name, routes, relays, own)
    )


def _sticky(combo: ComboSettings) -> StickyPolicy:
    """Give how a combo keeps a run or a session on one route.

    By default those do that score, and all of the bandit family: with the others an order was asked
    for that a pin would undo.
    """
    own, is_classic = combo.sticky, combo.family == "classic"
    enabled = own.enabled if own.enabled is not None else combo.strategy_options.sticky
    if enabled is None:
        enabled = not is_classic or (combo.family, combo.strategy_name) in PRESETS
    return StickyPolicy(
        enabled=enabled,
        scope=own.scope or (RUN if is_classic else SESSION),
        is_hard=is_classic if own.mode is None else own.mode == "hard",
        ttl_s=own.ttl_s,
        min_headroom=own.min_headroom,
    )


def _gate(combo: ComboSettings) -> GatePolicy:
    """Give the gate of a combo; empty answers are refused by default in the bandit family."""
    own = combo.response
    by_default = combo.family == "bandit"
    return GatePolicy(
        reject_empty=by_default if own.reject_empty is None else own.reject_empty,
        require_terminal=own.require_terminal,
        min_content_length=own.min_content_length,
        forbidden_substrings=own.forbidden_substrings,
        apply_to=own.apply_to,
    )
