"""What types cannot say about the pool: references, duplicates, strategies by family."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from cluster_gw.core.limits.windows import ROLLING
from cluster_gw.core.routing.aliases import ALIASES, AUTO, PREFIX, RESERVED
from cluster_gw.core.routing.groups import without_effect
from cluster_gw.core.routing.presets import PRESETS as SCORED
from cluster_gw.core.routing.resolution import CLAUDE_OTHERS, CLAUDE_WORDS
from cluster_gw.providers.presets import PRESETS
from cluster_gw.providers.quirks import ACCOUNT_IN_KEY
from cluster_gw.settings.bundled import provider_facts
from cluster_gw.settings.client import ClientSettings
from cluster_gw.settings.embedding import check_embeddings, embedding_routes, families_of, is_plain
from cluster_gw.settings.faults import Absent, Faults, at_index, at_name, shown
from cluster_gw.settings.free_tier import check_catalog
from cluster_gw.settings.pool import (
    ComboSettings,
    KeySettings,
    MemberSettings,
    ProviderSettings,
    Settings,
    StrategyOptions,
)
from cluster_gw.settings.relays import (
    KEYLESS_SUFFIX,
    Place,
    grouped,
    groups_of,
    places_of,
    route_of,
)
from cluster_gw.settings.rules import NOT_YET, Runnable, is_zone
from cluster_gw.settings.strategies import FACTORS, STRATEGIES
from cluster_gw.settings.ways import check_base_url, check_key_proxy
from cluster_gw.settings.written import Document

PROFILE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,20}")
ALL: Final = "*"
CUSTOM: Final = "custom"
IDLE_OPTIONS: Final = MappingProxyType(
    {"exploration": "routing.explore_unmeasured", "lkgp_boost": None}
)


def check_pool(settings: Settings, document: Document, runnable: Runnable, faults: Faults) -> None:
    """Report what is wrong between providers, keys, models, combos and clients."""
    for name, provider in settings.providers.items():
        path = at_name("providers", name)
        _check_provider(provider, path, runnable, faults)
        check_base_url(provider_facts(provider).base_url, settings, path, faults)
    _check_keys(settings, document, faults)
    _check_accounts(settings, document, faults)
    _check_models(settings, document, faults)
    check_catalog(settings, document, faults)
    places = places_of(settings)
    _check_relays(document, places, faults)
    check_embeddings(settings, document, places, faults)
    _check_combos(settings, document, places, faults)
    _check_clients(settings, document, places, faults)
    _check_prior(settings, document, places, faults)
    _check_unify(settings, places, faults)
    _check_claude_names(settings, document, places, faults)
    _warn_of_idle_models(settings, faults)


def _check_provider(
    provider: ProviderSettings, path: str, runnable: Runnable, faults: Faults
) -> None:
    if provider.preset is not None and provider.preset not in PRESETS:
        faults.add(at_name(path, "preset"), faults.unknown(provider.preset, sorted(PRESETS)))
        return
    facts = provider_facts(provider)
    if not facts.base_url:
        faults.add(path, "needs a preset or a base_url")
    if facts.dialect not in runnable.dialects:
        usable = " or ".join(f'"{d}"' for d in sorted(runnable.dialects))
        faults.add(at_name(path, "dialect"), f'"{facts.dialect}" is {NOT_YET}; use {usable}')
    if facts.day_reset != ROLLING and not is_zone(facts.day_reset):
        faults.add(
            at_name(path, "day_reset"), 'must be "rolling" or a time zone such as America/New_York'
        )


def _check_keys(settings: Settings, document: Document, faults: Faults) -> None:
    providers = document.providers()
    models: dict[str, list[str]] = {}
    for model in settings.models:
        models.setdefault(model.provider, []).append(model.model)
    reserved = {f"{p}{KEYLESS_SUFFIX}" for p, s in settings.providers.items() if is_keyless(s)}
    keys = list(document.items("keys", settings.keys))
    _check_unique([(at_name(path, "id"), key.id) for path, key in keys], faults)
    seen: dict[tuple[str, str], str] = {}
    for path, key in keys:
        if key.id in reserved:
            faults.add(at_name(path, "id"), "is the name of the provider's own keyless entry")
        if isinstance(key.provider, Absent):
            continue
        if key.provider not in providers:
            faults.add(at_name(path, "provider"), faults.unknown(key.provider, providers))
            continue
        for i, name in enumerate(key.models or ()):
            known = models.get(key.provider, [])
            if name not in known and f"{key.provider}/{name}" not in document_routes(document):
                faults.add(at_index(at_name(path, "models"), i), faults.unknown(name, known))
        check_base_url(key.base_url, settings, path, faults)
        check_key_proxy(key.proxy, path, faults)
        _check_account(key, settings.providers.get(key.provider), path, faults)
        first = seen.setdefault((key.provider, key.secret.reveal()), path)
        if first != path and key.secret:
            faults.warn(path, f"has the same secret as {first}: their limits are counted apart")


def _check_account(
    key: KeySettings, provider: ProviderSettings | None, path: str, faults: Faults
) -> None:
    """Report a credential without the account that belongs into its provider's address."""
    if provider is None or ACCOUNT_IN_KEY not in provider_facts(provider).quirks:
        return
    account, _, token = key.secret.reveal().partition(":")
    if key.secret and not (account and token):
        faults.add(at_name(path, "secret"), "must read account:token at this provider")


def _check_accounts(settings: Settings, document: Document, faults: Faults) -> None:
    """Report limits that would hold nobody: those of an account no key names."""
    known: dict[str, list[str]] = {}
    declared = document.plain.get("keys")
    for key in declared if isinstance(declared, list) else ():
        if isinstance(key, dict):
            account = key.get("account") or key.get("id")
            known.setdefault(str(key.get("provider")), []).append(str(account))
    for name, provider in settings.providers.items():
        accounts = known.get(name, [])
        if is_keyless(provider):
            accounts = [*accounts, f"{name}{KEYLESS_SUFFIX}"]
        path = at_name(at_name("providers", name), "accounts")
        for account in provider.accounts:
            if account not in accounts:
                faults.add(at_name(path, account), faults.unknown(account, accounts))


def document_routes(document: Document) -> list[str]:
    """List the route ids the file declares, also those of refused models."""
    return document.names("models", "provider", "model")


def is_keyless(provider: ProviderSettings) -> bool:
    """Whether a provider is called without a credential."""
    return provider_facts(provider).keyless


def _check_models(settings: Settings, document: Document, faults: Faults) -> None:
    providers = document.providers()
    models = list(document.items("models", settings.models))
    _check_unique(
        [
            (at_name(path, "model"), f"{model.provider}/{model.model}")
            for path, model in models
            if not isinstance(model.model, Absent)
        ],
        faults,
    )
    for path, model in models:
        if model.provider not in providers and not isinstance(model.provider, Absent):
            faults.add(at_name(path, "provider"), faults.unknown(model.provider, providers))
        if not is_plain(model.model):
            faults.add(at_name(path, "model"), "must be printable and without spaces")


def _check_relays(document: Document, places: Sequence[Place], faults: Faults) -> None:
    """Report a relay whose route would have the id of another model."""
    declared = document_routes(document)
    for place in places:
        if place.endpoint and place.id in declared:
            faults.add("models", f'"{place.id}" is both a model and a relay of "{place.plain}"')


def _check_combos(
    settings: Settings, document: Document, places: Sequence[Place], faults: Faults
) -> None:
    declared = document.names("combos", "id")
    ids = declared if "combos" in document.plain else [combo.id for combo in settings.combos]
    combos = list(document.items("combos", settings.combos))
    _check_unique([(at_name(path, "id"), combo.id) for path, combo in combos], faults)
    routes = known_routes(settings, document, places)
    profiles = [(at_name(path, "id"), combo.id.lower()) for path, combo in combos if combo.profile]
    _check_unique(profiles, faults, what="this name of a profile, but for case,")
    for path, combo in combos:
        _check_strategy(combo, path, faults)
        _check_factors(combo, path, faults)
        _warn_of_idle_options(combo, path, faults)
        _check_members(combo, path, routes, embedding_routes(places), faults)
        _check_profile(combo, path, faults)
        if combo.id.lower().startswith(PREFIX):
            told = "is one of the gateway's own names, auto:NAME; name it otherwise"
            faults.add(at_name(path, "id"), f"{shown(combo.id)} {told}")
    if settings.default_combo not in ids:
        faults.add("default_combo", faults.unknown(settings.default_combo, ids))


def _check_strategy(combo: ComboSettings, path: str, faults: Faults) -> None:
    place, name = at_name(path, "strategy"), combo.strategy_name
    mine = STRATEGIES[combo.family]
    others = [family for family, names in STRATEGIES.items() if name in names]
    if name in mine:
        return
    if others:
        faults.add(
            place,
            f'{shown(name)} belongs to family "{others[0]}", this combo is "{combo.family}"',
        )
    else:
        faults.add(place, faults.unknown(name, mine))


def _warn_of_idle_options(combo: ComboSettings, path: str, faults: Faults) -> None:
    """Name what somebody set of the classic family's scoring in a combo that has none of it.

    What is set to what holds anyway, or to nothing, is what the admin API shows and takes back.
    """
    if combo.family == "classic" and (combo.family, combo.strategy_name) in SCORED:
        return
    own, usual = combo.strategy_options, StrategyOptions()
    for name, instead in IDLE_OPTIONS.items():
        if getattr(own, name) not in {0.0, getattr(usual, name)}:
            hint = f"; see {instead}" if instead and combo.family == "bandit" else ""
            faults.warn(
                at_name(path, f"strategy_options.{name}"),
                f'has no effect: strategy is "{combo.strategy_name}" of "{combo.family}"{hint}',
            )


def _check_factors(combo: ComboSettings, path: str, faults: Faults) -> None:
    names = FACTORS[combo.family]
    tables: Mapping[str, Mapping[str, float]] = {
        at_name(path, "weights"): combo.weights or {},
        at_name(path, "strategy_options.weights"): combo.strategy_options.weights,
    }
    for place, table in tables.items():
        for name in table:
            if name not in names:
                faults.add(
                    at_name(place, name),
                    faults.unknown(name, names).replace("unknown", "unknown factor"),
                )
        if table and not any(table.values()):
            faults.add(place, "at least one weight must be above 0")
        if table and combo.family == "bandit" and combo.strategy_name != CUSTOM:
            faults.warn(place, f'has no effect: strategy is "{combo.strategy_name}"')
    if all(tables.values()) and len(set(map(str, tables.values()))) > 1:
        faults.add(at_name(path, "strategy_options.weights"), "contradicts weights")
    alias, own = combo.strategy_options.sticky, combo.sticky.enabled
    if alias is not None and own is not None and alias != own:
        faults.add(at_name(path, "strategy_options.sticky"), "contradicts sticky.enabled")


def known_routes(settings: Settings, document: Document, places: Sequence[Place]) -> list[str]:
    """List everything a member may name: models, also refused ones, and those behind relays."""
    declared = (f"{model.provider}/{model.model}" for model in settings.models)
    relays = (place.id for place in places if place.endpoint)
    return list(dict.fromkeys([*document_routes(document), *declared, *relays]))


def _check_profile(combo: ComboSettings, path: str, faults: Faults) -> None:
    """A profile has a name that `auto:NAME` can mean; nothing but a profile may be empty."""
    if not combo.profile:
        if not combo.members:
            faults.add(
                at_name(path, "members"), "needs at least one route; only a profile may be empty"
            )
        return
    place = at_name(path, "id")
    if isinstance(combo.id, Absent):
        return
    if combo.id.lower() in RESERVED:
        faults.add(place, f"{shown(combo.id)} is reserved: auto:{combo.id} means something else")
    elif not PROFILE_NAME.fullmatch(combo.id):
        faults.add(place, "of a profile must be 1 to 20 letters, digits, - or _")


def _check_members(
    combo: ComboSettings, path: str, routes: list[str], embedding: frozenset[str], faults: Faults
) -> None:
    if isinstance(combo.members, str):
        return
    seen: set[str] = set()
    known = frozenset(routes)
    for i, member in enumerate(combo.members):
        place = at_index(at_name(path, "members"), i)
        name = member.route if isinstance(member, MemberSettings) else member
        route = route_of(name, known)
        if isinstance(name, Absent):
            continue
        if isinstance(member, MemberSettings):
            place = at_name(place, "route")
        if route is None:
            faults.add(place, faults.unknown(name, routes))
        elif route in embedding:
            faults.add(place, f'"{route}" makes embeddings; a combo is for chats')
        elif route in seen:
            faults.add(place, f'"{route}" stands twice')
        else:
            seen.add(route)


def _check_prior(
    settings: Settings, document: Document, places: Sequence[Place], faults: Faults
) -> None:
    """Name statistics of others that are about nothing here."""
    routes = known_routes(settings, document, places)
    for name in settings.routing.community_prior or {}:
        if route_of(name, routes) is None:
            path = at_name("routing.community_prior", name)
            faults.warn(path, f"{faults.unknown(name, routes)}; it has no effect")


def _check_clients(
    settings: Settings, document: Document, places: Sequence[Place], faults: Faults
) -> None:
    clients = list(document.items("clients", settings.clients))
    combos = [*document.names("combos", "id"), *(combo.id for combo in settings.combos), *ALIASES]
    groups = [group.slug for group in groups_of(settings, places)] + families_of(settings)
    _check_unique([(at_name(path, "id"), client.id) for path, client in clients], faults)
    hashes = [
        (at_name(place, "key_sha256"), key.lower())
        for path, client in clients
        for place, key in _keys_of(path, client)
        if not isinstance(key, Absent)
    ]
    _check_unique(hashes, faults, what="this hash")
    unpriced = [
        f"{model.provider}/{model.model}"
        for model in settings.models
        if model.price.input is None or model.price.output is None
    ]
    for path, client in clients:
        if client.limits.monthly_usd is not None and unpriced:
            place = at_name(path, "limits.monthly_usd")
            faults.warn(place, f"does not count models without a price: {', '.join(unpriced)}")
        for i, name in enumerate(client.combos):
            if name != ALL and name not in combos and name not in groups:
                place = at_index(at_name(path, "combos"), i)
                faults.add(place, faults.unknown(name, list(dict.fromkeys([*combos, *groups]))))


def _keys_of(path: str, client: ClientSettings) -> Iterator[tuple[str, str]]:
    """The hash of every key of a client that may be taken, with its place."""
    yield path, client.key_sha256
    for i, one in enumerate(client.previous_keys):
        yield at_index(at_name(path, "previous_keys"), i), one.key_sha256


def _check_claude_names(
    settings: Settings, document: Document, places: Sequence[Place], faults: Faults
) -> None:
    """Refuse names that nothing has; the others are told with their whole list."""
    combos = [*document.names("combos", "id"), *(combo.id for combo in settings.combos)]
    known = [*dict.fromkeys(combos), AUTO, *ALIASES, *(place.id for place in places)]
    names = settings.routing.claude_names
    for word in (*CLAUDE_WORDS, CLAUDE_OTHERS):
        name = getattr(names, word)
        if name is not None and name not in known:
            faults.add(at_name("routing.claude_names", word), faults.unknown(name, known))


def _check_unify(settings: Settings, places: Sequence[Place], faults: Faults) -> None:
    """Name merges and splits that are about no model."""
    unify = settings.unify
    routes = [grouped(place) for place in places]
    for path, name in without_effect(routes, unify.merges, unify.splits):
        faults.warn(at_name("unify", path), f"{shown(name)} is no model; it has no effect")


def _check_unique(
    named: Iterable[tuple[str, str]], faults: Faults, what: str | None = None
) -> None:
    seen: dict[str, str] = {}
    for path, name in named:
        if isinstance(name, Absent):
            continue
        first = seen.setdefault(name, path)
        if first != path:
            faults.add(path, f"{what or shown(name)} stands already at {first}")


def _warn_of_idle_models(settings: Settings, faults: Faults) -> None:
    if not settings.models:
        faults.warn("models", "none is declared: there is nothing to route to")
    served = {key.provider for key in settings.keys}
    served |= {name for name, p in settings.providers.items() if is_keyless(p)}
    for name in settings.providers:
        if name not in served:
            faults.warn(at_name("providers", name), "has no key: its models cannot serve")
