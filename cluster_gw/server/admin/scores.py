"""How each route of a combo stands now: its place, its score, and the axes behind that.

Every member is told of, also those that take no part: an operator compares before switching.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from cluster_gw.core.routing.catalog import Candidate, Combo, Route
from cluster_gw.core.routing.evidence import Evidence, build_evidence
from cluster_gw.core.routing.explanation import ExplainedRoute, Explanation
from cluster_gw.core.routing.signals import Signals
from cluster_gw.units import RouteId


def scores_of(
    combo: Combo,
    routes: Mapping[RouteId, Route],
    signals: Signals,
    explained: Explanation | None,
) -> list[dict[str, Any]]:
    """Tell of each member, in the order in which a request would try them.

    Args:
        combo: whose members they are.
        routes: all there are.
        signals: what is known of them; means stand in for draws.
        explained: how a request would be ranked; None where nothing can serve one.
    """
    members = {member.route: member.enabled for member in combo.members}
    candidates = tuple(
        [Candidate(route=routes[name], position=place) for place, name in enumerate(members)]
    )
    axes = axes_of(build_evidence(candidates, signals)) if candidates else []
    ranking: Sequence[ExplainedRoute] = explained.ranking if explained else ()
    places = {place.route: place for place in ranking}
    missing = {one.route: one.code for one in (explained.skipped if explained else ())}
    told = []
    for candidate, own_axes in zip(candidates, axes, strict=True):
        route = candidate.route
        place = places.get(route.id)
        told.append(
            {
                "rank": None if place is None else place.rank,
                "route": route.id,
                "provider": route.provider,
                "model": route.model,
                "name": route.name,
                "enabled": members[route.id],
                "model_enabled": route.enabled,
                "excluded": None if place else missing.get(route.id, _why_absent(route, members)),
                **own_axes,
                **({} if place is None else _weighed(place)),
                "score": None if place is None else place.score,
            }
        )
    return sorted(told, key=lambda one: (one["rank"] is None, one["rank"] or 0))


def axes_of(evidence: Evidence) -> list[dict[str, float]]:
    """Give what the first generation weighs and multiplies by, of each candidate, by means."""
    columns = {
        "reliability": evidence.draws.take(None),
        "speed": evidence.speed,
        "intelligence": evidence.intelligence,
        **{one.name: one.values for one in evidence.multipliers},
        "total_requests": evidence.samples,
    }
    return [
        {name: float(values[row]) for name, values in columns.items()}
        for row in range(len(evidence.candidates))
    ]


def _weighed(place: ExplainedRoute) -> dict[str, float]:
    """What made the score, where there is one: it may differ from the axes in its family."""
    factors = {factor.name: factor.value for factor in place.factors}
    return factors | {multiplier.name: multiplier.value for multiplier in place.multipliers}


def _why_absent(route: Route, members: Mapping[RouteId, bool]) -> str | None:
    return None if members[route.id] and route.enabled else "disabled"
