"""Orders of a chain by one quality of its models: pure functions of the catalogue.

An operator sorts a chain once and goes on from there; nothing here looks at limits or health.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from cluster_gw.core.routing.axes import USUAL_RANK, lower_median, speed_score
from cluster_gw.core.routing.catalog import Member, Route
from cluster_gw.core.routing.signals import RouteSignals
from cluster_gw.core.routing.statistics import Statistics
from cluster_gw.units import RouteId

MONTH_DAYS: Final = 30
MEASURED_FROM: Final = 20.0  # attempts, by weight, that say something of speed
SPEED_RANKS: Final = 9  # steps between the fastest rank, 1, and the slowest


class SortPreset(StrEnum):
    """What a chain is sorted by, the best first."""

    INTELLIGENCE = "intelligence"
    SPEED = "speed"
    BUDGET = "budget"


def sort_members(
    preset: SortPreset,
    members: Sequence[Member],
    routes: Mapping[RouteId, Route],
    known: Mapping[RouteId, RouteSignals] = MappingProxyType({}),
) -> tuple[Member, ...]:
    """Put the members of a combo in order; their flags stay, and equal ones keep their order.

    Args:
        preset: intelligence puts the tier before the rank, so that no Medium model comes before a
            Frontier one; budget is tokens a month.
        members: of the combo.
        routes: of the catalogue.
        known: how routes did lately; says how fast those are that have no `speed_rank`.
    """
    badness = _BADNESS[preset](list(routes.values()), known)
    return tuple(sorted(members, key=lambda member: badness(routes[member.route])))


def measured_speed_rank(statistics: Statistics) -> int | None:
    """The place of a route by what was measured, 1 (fastest) to 10; None while that is little."""
    if statistics.successes + statistics.timeouts < MEASURED_FROM:
        return None
    return 1 + math.floor((1.0 - speed_score(statistics)) * SPEED_RANKS + 0.5)


def month_tokens(route: Route) -> int:
    """Tokens that a key of a route has in a month: of its daily limit, else as configured."""
    daily = route.limits.tpd
    return (route.monthly_tokens or 0) if daily is None else daily * MONTH_DAYS


Badness = Callable[[Route], float]
"""Gives what routes are sorted by, the smallest first."""


def _stupidity(_routes: Sequence[Route], _known: Mapping[RouteId, RouteSignals]) -> Badness:
    return lambda route: -route.intelligence


def _slowness(routes: Sequence[Route], known: Mapping[RouteId, RouteSignals]) -> Badness:
    usual = lower_median([r.speed_rank for r in routes if r.speed_rank is not None]) or USUAL_RANK

    def rank(route: Route) -> float:
        if route.speed_rank is not None:
            return route.speed_rank
        seen = known.get(route.id)
        measured = None if seen is None else measured_speed_rank(seen.statistics)
        return usual if measured is None else measured

    return rank


def _poverty(_routes: Sequence[Route], _known: Mapping[RouteId, RouteSignals]) -> Badness:
    return lambda route: -month_tokens(route)


_BADNESS: Final = MappingProxyType(
    {
        SortPreset.INTELLIGENCE: _stupidity,
        SortPreset.SPEED: _slowness,
        SortPreset.BUDGET: _poverty,
    }
)
