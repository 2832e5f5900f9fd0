"""What a request asks for beyond one name: several models in turn, providers it wants or not.

Seldom needed: most requests name one thing that their client may use. What is made of such a
request is kept, as long as there are few different ones, so that the next one costs a look-up.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from cluster_gw.canonical.request import ChatRequest, Wishes
from cluster_gw.core.routing.catalog import Resolved, Route
from cluster_gw.core.routing.resolution import Catalog, NameProblem
from cluster_gw.units import RouteId

NOTHING: Final = Wishes()
MAX_KEPT: Final = 256


class NameFault(msgspec.Struct, frozen=True, kw_only=True):
    """A name that cannot be served to a client.

    Attributes:
        param: the member of the body that holds it.
    """

    problem: NameProblem
    name: str
    param: str


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Wishes in terms of this configuration: providers that nobody has are gone.

    Attributes:
        only: None when all may serve.
    """

    order: tuple[str, ...]
    only: frozenset[str] | None
    ignore: frozenset[str]

    def wants(self, route: Route) -> bool:
        """Whether the provider of a route may serve."""
        provider = route.provider
        return provider not in self.ignore and (self.only is None or provider in self.only)

    def place(self, route: Route) -> int:
        """The place of its provider in the order; behind all of them when it has none."""
        provider = route.provider
        return self.order.index(provider) if provider in self.order else len(self.order)


def choose(
    catalog: Catalog, request: ChatRequest, scope: frozenset[str] | None
) -> Resolved | NameFault:
    """Tell what a request may be served by.

    Args:
        catalog: of this configuration.
        request: names a model, several, or none.
        scope: combos and routes its client may use; None for all.
    """
    wishes = request.wishes or NOTHING
    names = [(name, f"models[{place}]") for place, name in enumerate(wishes.models)]
    if request.model or not names:
        names.insert(0, (request.model, "model"))
    chosen: list[Resolved] = []
    for name, param in names:
        if request.embedding is None:
            found = _find(catalog, name, param, scope)
        else:
            found = _find_family(catalog, name, param, scope)
        if isinstance(found, NameFault):
            return found
        chosen.append(found)
    wanted = _wanted(catalog, wishes)
    if len(chosen) == 1 and wanted == _Wanted(order=(), only=None, ignore=frozenset()):
        return chosen[0]
    joined = _joined(catalog, chosen, wanted)
    if not joined.routes and joined.left_out:
        return NameFault(problem=NameProblem.NO_PROVIDER, name=names[0][0], param="provider")
    return joined


def _find(
    catalog: Catalog, name: str, param: str, scope: frozenset[str] | None
) -> Resolved | NameFault:
    found = catalog.resolve(name)
    if found is None:
        return NameFault(problem=catalog.problem_of(name), name=name, param=param)
    allowed = within(found, scope)
    if allowed is None:
        return NameFault(problem=NameProblem.NOT_ALLOWED, name=name, param=param)
    return allowed


def _find_family(
    catalog: Catalog, name: str, param: str, scope: frozenset[str] | None
) -> Resolved | NameFault:
    found = catalog.families.get(name)
    if found is None or not found.routes:
        return NameFault(problem=catalog.problem_of_embedding(name), name=name, param=param)
    allowed = within(found, scope)
    if allowed is None or not allowed.routes:
        return NameFault(problem=NameProblem.NOT_ALLOWED, name=name, param=param)
    return allowed


def within(resolved: Resolved, scope: frozenset[str] | None) -> Resolved | None:
    """Give what a client may use of a name; None when that is nothing.

    Of a combo it may use all or nothing, of a choice each route by itself.

    Args:
        resolved: what the name stands for.
        scope: combos and routes the client may use; None for all.
    """
    if scope is None or resolved.combo in scope:
        return resolved
    if not resolved.is_choice:
        return None
    if scope not in resolved.scoped:
        tiers = resolved.tiers or (0,) * len(resolved.routes)
        kept = [
            (route, tier)
            for route, tier in zip(resolved.routes, tiers, strict=True)
            if route.id in scope
        ]
        resolved.scoped[scope] = (
            msgspec.structs.replace(
                resolved,
                routes=tuple(route for route, _ in kept),
                tiers=tuple(tier for _, tier in kept),
                disabled=tuple(route for route in resolved.disabled if route.id in scope),
            )
            if kept
            else None
        )
    return resolved.scoped[scope]


def _wanted(catalog: Catalog, wishes: Wishes) -> _Wanted:
    known = {provider.lower(): provider for provider in catalog.providers}

    def ours(names: Sequence[str]) -> list[str]:
        found = [known.get(name.lower()) for name in names]
        return list(dict.fromkeys(name for name in found if name is not None))

    return _Wanted(
        order=tuple(ours(wishes.order)),
        only=None if wishes.only is None else frozenset(ours(wishes.only)),
        ignore=frozenset(ours(wishes.ignore)),
    )


def _joined(catalog: Catalog, chosen: Sequence[Resolved], wanted: _Wanted) -> Resolved:
    name = (tuple(id(one) for one in chosen), wanted)
    kept = catalog.joined.get(name)
    if kept is None:
        is_kept = all(one.is_kept for one in chosen) and len(catalog.joined) < MAX_KEPT
        kept = _join(chosen, wanted, is_kept=is_kept)
        if is_kept:
            catalog.joined[name] = kept
    return kept


def _join(chosen: Sequence[Resolved], wanted: _Wanted, *, is_kept: bool) -> Resolved:
    """Put what was chosen into one list, ranked as the first of it is.

    The better match is the earlier model, then the preferred provider, then the better match within
    that model.
    """
    matches: dict[RouteId, tuple[int, int, int]] = {}
    routes: list[Route] = []
    others: dict[RouteId, Route] = {}
    left_out: dict[RouteId, Route] = {}
    for place, one in enumerate(chosen):
        for candidate in one.candidates:
            route = candidate.route
            if not wanted.wants(route):
                left_out[route.id] = route
            elif route.id not in matches:
                matches[route.id] = (place, wanted.place(route), candidate.match_tier)
                routes.append(route)
        others.update((route.id, route) for route in one.disabled)
    tiers = {match: tier for tier, match in enumerate(sorted(set(matches.values())))}
    return msgspec.structs.replace(
        chosen[0],
        routes=tuple(routes),
        tiers=tuple(tiers[matches[route.id]] for route in routes),
        disabled=tuple(r for r in others.values() if r.id not in matches and r.id not in left_out),
        left_out=tuple(left_out.values()),
        is_kept=is_kept,
    )
