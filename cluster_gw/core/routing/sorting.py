"""Orders of a chain by one quality of its models: pure functions of the catalogue.

An operator sorts a chain once and goes on from there; nothing here looks at limits or health.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from cluster_gw.core.routing.axes import USUAL_RANK, lower_median
from cluster_gw.core.routing.catalog import Member, Route
from cluster_gw.core.routing.speed_ranks import SpeedRanks, speed_rank_of
from cluster_gw.units import RouteId

MONTH_DAYS: Final = 30


class SortPreset(StrEnum):
    """What a chain is sorted by, the best first."""

    INTELLIGENCE = "intelligence"
    SPEED = "speed"
    BUDGET = "budget"


def sort_members(
    preset: SortPreset,
    members: Sequence[Member],
    routes: Mapping[RouteId, Route],
    written: SpeedRanks = MappingProxyType({}),
) -> tuple[Member, ...]:
    """Put the members of a combo in order; their flags stay, and equal ones keep their order.

    Args:
        preset: intelligence puts the tier before the rank, so that no Medium model comes before a
            Frontier one; budget is tokens a month.
        members: of the combo.
        routes: of the catalogue.
        written: how fast routes were; of those that have no `speed_rank` of the operator.
    """
    badness = _BADNESS[preset](list(routes.values()), written)
    return tuple(sorted(members, key=lambda member: badness(routes[member.route])))


def month_tokens(route: Route) -> int:
    """Tokens that a key of a route has in a month: of its daily limit, else as configured."""
    daily = route.limits.tpd
    return (route.monthly_tokens or 0) if daily is None else daily * MONTH_DAYS


Badness = Callable[[Route], float]
"""Gives what routes are sorted by, the smallest first."""


def _stupidity(_routes: Sequence[Route], _written: SpeedRanks) -> Badness:
    return lambda route: -route.intelligence


def _slowness(routes: Sequence[Route], written: SpeedRanks) -> Badness:
    usual = lower_median([r.speed_rank for r in routes if r.speed_rank is not None]) or USUAL_RANK

    def rank(route: Route) -> float:
        found = speed_rank_of(route, written)
        return usual if found is None else found

    return rank


def _poverty(_routes: Sequence[Route], _written: SpeedRanks) -> Badness:
    return lambda route: -month_tokens(route)


_BADNESS: Final = MappingProxyType(
    {
        SortPreset.INTELLIGENCE: _stupidity,
        SortPreset.SPEED: _slowness,
        SortPreset.BUDGET: _poverty,
    }
)
