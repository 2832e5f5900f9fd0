"""Everything one upstream call needs that does not change between requests, built per catalogue."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from cluster_gw.canonical.request import Dialect
from cluster_gw.core.limits.caps import scale_weight
from cluster_gw.core.limits.estimate import raised_at_most
from cluster_gw.core.outcome.trace import routed_via
from cluster_gw.core.routing.catalog import Key, Route
from cluster_gw.core.routing.ranking import Ranking
from cluster_gw.core.routing.resolution import Catalog
from cluster_gw.pipeline.consoles import Consoles
from cluster_gw.providers.base import NotingProvider, Provider
from cluster_gw.providers.gemini_contents import may_sign
from cluster_gw.providers.quirks import REASONING_ECHO, address_of, combine
from cluster_gw.store.admission import TargetLimits
from cluster_gw.units import KeyId, RouteId
from cluster_gw.upstream.proxy import Way


class Recalls(StrEnum):
    """What of earlier answers a target wants to see again, where clients do not send it back."""

    REASONING = "reasoning"  # what its model thought beside its calls
    SIGNATURES = "signatures"  # its vendor's proofs of the calls


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A route with one of its keys, ready to be called.

    Attributes:
        secret: the credential, for redaction of what the upstream echoes; never logged.
        headers: request headers, with the credential.
        url: of a call with a buffered answer; `stream_url` of one with a stream.
        dialect: what its codec speaks.
        noting: its codec, where it may change what came in its own dialect and must say so.
        check_url: of a free call that tells whether the key is valid, None without one.
        way: how it is reached, None for simply by itself.
        consoles: of its key, where its provider has two; None for most.
        via: the value of `X-Routed-Via`.
        most_tokens: how far learning may raise an estimate.
        recalls: what it wants to see again; None for most.
    """

    route: Route
    key: Key
    limits: TargetLimits
    codec: Provider
    url: str
    stream_url: str
    dialect: Dialect
    headers: tuple[tuple[str, str], ...]
    secret: str | None
    check_url: str | None
    via: bytes
    noting: NotingProvider | None = None
    most_tokens: int | None = None
    recalls: Recalls | None = None
    way: Way | None = None
    consoles: Consoles | None = None

    def __repr__(self) -> str:
        """Name the target without its headers: a repr may reach a log."""
        return f"Target({self.route.id}, {self.key.id})"


Targets = Mapping[RouteId, Mapping[KeyId, Target]]
WayOf = Callable[[str, KeyId], Way | None]
"""How a key's calls reach an address."""
NO_TARGETS: Final[Targets] = MappingProxyType({})


def build_targets(
    catalog: Catalog,
    reveal: Callable[[KeyId], str | None],
    codec_of: Callable[[Route], Provider],
    before: Targets = NO_TARGETS,
    way_of: WayOf = lambda _url, _key: None,
) -> Targets:
    """Prepare every route with every key that may serve it.

    Args:
        catalog: the routes.
        reveal: gives the secret of a key, None for a keyless provider.
        codec_of: gives the upstream codec of a route.
        before: those of the configuration before; what has not changed is taken from there, which
            is most of it, and making it anew takes a worker's time from its requests.
        way_of: tells how a key's calls reach an address.
    """
    known = {
        key: target.consoles
        for by_key in before.values()
        for key, target in by_key.items()
        if target.consoles is not None
    }
    parts = _Parts(reveal, codec_of, way_of, known)
    return {
        route.id: _of_route(route, parts, before.get(route.id, {}))
        for route in catalog.routes.values()
    }


class _Parts(NamedTuple):
    reveal: Callable[[KeyId], str | None]
    codec_of: Callable[[Route], Provider]
    way_of: WayOf
    consoles: dict[KeyId, Consoles]  # one for each key, whatever its model


def _of_route(
    route: Route, parts: _Parts, before: Mapping[KeyId, Target]
) -> Mapping[KeyId, Target]:
    first = next(iter(before.values()), None)
    kept = before if first is not None and first.route == route else {}
    found: dict[KeyId, Target] = {}
    for key in route.keys:
        secret, old = parts.reveal(key.id), kept.get(key.id)
        way = parts.way_of(key.base_url or route.base_url, key.id)
        if old is None or old.secret != secret or old.way != way:
            old = _build_target(route, key, secret, parts.codec_of(route), way)
            old = _with_consoles(old, parts.consoles)
        found[key.id] = old
    return found


def _with_consoles(target: Target, known: dict[KeyId, Consoles]) -> Target:
    """Give a target with the consoles of its key, where its address is that of one of them."""
    base_url = target.key.base_url or target.route.base_url
    both = combine(target.route.quirks).consoles
    if base_url not in both:
        return target
    (other,) = (one for one in both if one != base_url)
    consoles = known.setdefault(target.key.id, Consoles(base_url, other))
    return msgspec.structs.replace(target, consoles=consoles)


def _build_target(
    route: Route, key: Key, secret: str | None, codec: Provider, way: Way | None
) -> Target:
    base_url = address_of(route.quirks, key.base_url or route.base_url, secret)
    return Target(
        route=route,
        key=key,
        limits=TargetLimits(
            provider=route.provider,
            account=key.account,
            key=key.id,
            model=route.subject,
            day_reset=route.day_reset,
            model_limits=route.limits,
            key_limits=key.limits,
            account_limits=key.account_limits,
            caps=key.caps,
            token_weight=scale_weight(route.token_weight),
            host=route.host,
            price=route.price if route.is_cost_known else None,
        ),
        codec=codec,
        noting=codec if isinstance(codec, NotingProvider) and codec.has_notes else None,
        url=codec.url(base_url, route.model),
        stream_url=codec.stream_url(base_url, route.model),
        dialect=codec.dialect,
        headers=codec.request_headers(secret),
        secret=secret,
        check_url=codec.check_url(base_url) if secret else None,
        way=way,
        via=routed_via(route.provider, route.subject).encode(),
        most_tokens=raised_at_most(token_limits(route, key)),
        recalls=recalls_of(route, codec.dialect),
    )


def recalls_of(route: Route, dialect: Dialect) -> Recalls | None:
    """What a route wants to see again."""
    if route.embedding is not None:
        return None
    if dialect is Dialect.GEMINI:
        return Recalls.SIGNATURES if may_sign(route.model) else None
    is_echoing = dialect is Dialect.OPENAI and REASONING_ECHO in route.quirks
    return Recalls.REASONING if is_echoing else None


def token_limits(route: Route, key: Key) -> list[int | None]:
    """Every limit that a request's tokens must fit into, in tokens of this route."""
    cap, weight = key.caps.tpd, route.token_weight
    capped = None if cap is None or weight <= 0 else int(cap / weight)
    bounds = (route.limits, key.limits, key.account_limits)
    windows = [limit for one in bounds for limit in (one.tpm, one.tpd)]
    return [*windows, capped, key.caps.monthly_tokens]


def present_in(targets: Targets, target: Target) -> Target:
    """Give a target as it is among those of now; itself where it is not there any more.

    Args:
        targets: of the configuration in force.
        target: of that one or of an earlier one.
    """
    return targets.get(target.route.id, {}).get(target.key.id, target)


def list_targets(ranking: Ranking, targets: Targets) -> list[Target]:
    """Spell a ranking out: each route with its keys as they are declared."""
    listed = []
    for candidate in ranking.candidates:
        route = candidate.route
        by_key = targets[route.id]
        for key in route.keys:
            listed.append(by_key[key.id])  # noqa: PERF401 - a third of the cost of a comprehension
    return listed
