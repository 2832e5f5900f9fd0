"""The part of the configuration that routing works with: routes, keys, combos; secrets apart."""

from collections.abc import Mapping, Sequence

import msgspec

from cluster_gw.core.limits.caps import overlay_caps
from cluster_gw.core.limits.price import Price
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.outcome.gate import GatePolicy
from cluster_gw.core.routing.axes import (
    TIERS,
    USUAL_RANK,
    USUAL_TIER,
    intelligence_composite,
    lower_median,
)
from cluster_gw.core.routing.catalog import Catalog, Combo, Key, Member, Route
from cluster_gw.core.routing.presets import PRESETS, Tuning, build_scoring
from cluster_gw.core.routing.prior import NO_PRIOR, capped_prior
from cluster_gw.core.routing.sticky_policy import RUN, SESSION, StickyPolicy
from cluster_gw.settings.bundled import ProviderFacts, overlay, provider_facts, token_weight
from cluster_gw.settings.pool import (
    ComboSettings,
    KeySettings,
    MemberSettings,
    ModelSettings,
    Settings,
)
from cluster_gw.settings.references import CUSTOM, KEYLESS_SUFFIX, route_of
from cluster_gw.settings.secret import Secret
from cluster_gw.settings.sections import RoutingSettings
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
    routes = {}
    usual = _usual(settings.models)
    priors = {
        route_of(name, (f"{m.provider}/{m.model}" for m in settings.models)): capped_prior(
            counts.successes, counts.failures
        )
        for name, counts in (settings.routing.community_prior or {}).items()
    }
    for model in settings.models:
        route = _route(model, facts[model.provider], keys[model.provider])
        routes[route.id] = msgspec.structs.replace(
            route,
            intelligence=intelligence_composite(
                model.tier or usual[0], model.intelligence_rank or usual[1]
            ),
            prior=priors.get(route.id, NO_PRIOR),
        )
    return Catalog(
        version=version,
        routes=routes,
        combos={ComboId(c.id): _combo(c, list(routes), settings.routing) for c in settings.combos},
        default_combo=ComboId(settings.default_combo),
        unknown_model_is_default=settings.unknown_model == "default",
    )


def secrets(settings: Settings) -> dict[KeyId, Secret]:
    """Give the credential of every key; keyless entries have none."""
    return {KeyId(key.id): key.secret for key in settings.keys}


def _usual(models: Sequence[ModelSettings]) -> tuple[str, int]:
    """Tier and rank of models that have none: the lower median of those that do."""
    tiers = lower_median([TIERS[m.tier] for m in models if m.tier is not None and TIERS[m.tier]])
    ranks = [m.intelligence_rank for m in models if m.intelligence_rank is not None]
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


def _route(model: ModelSettings, facts: ProviderFacts, keys: tuple[Key, ...]) -> Route:
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
        timeouts=facts.timeouts,
        quirks=facts.quirks,
        context_window=model.context_window,
        tools=model.tools,
        vision=model.vision,
        weight=model.weight,
        enabled=model.enabled,
        quality_hint=model.quality_hint,
        monthly_tokens=model.monthly_tokens or None,
        price=Price(input=model.price.input or 0.0, output=model.price.output or 0.0),
        keys=tuple(key for key in keys if key.models is None or model.model in key.models),
    )


def _combo(combo: ComboSettings, routes: list[RouteId], routing: RoutingSettings) -> Combo:
    members: tuple[Member, ...]
    if isinstance(combo.members, str):
        members = tuple(Member(route=route) for route in routes)
    else:
        members = tuple(_member(member, routes) for member in combo.members)
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
    )


def _member(member: str | MemberSettings, routes: list[RouteId]) -> Member:
    name, enabled = (member, True) if isinstance(member, str) else (member.route, member.enabled)
    return Member(route=RouteId(route_of(name, routes) or name), enabled=enabled)


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
