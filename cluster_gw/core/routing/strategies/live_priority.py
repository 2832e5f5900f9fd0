"""Declared order, but for live penalties: a point moves a route one place back."""

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Order
from cluster_gw.core.routing.signals import UNKNOWN_ROUTE
from cluster_gw.core.routing.strategies.base import StrategyInputs, by_tier


class LivePriority:
    """Order by declared rank plus the points of the model's penalty.

    Ranks are places among the enabled members, from 1 without gaps, so that a point is one place.
    """

    family = "bandit"
    name = "priority"
    needs_cursor = False
    needs_last_good = False

    def rank(
        self,
        candidates: tuple[Candidate, ...],
        context: RouteContext,  # noqa: ARG002 - order does not depend on the request
        inputs: StrategyInputs,
    ) -> Order:
        """Give candidates by tier, rank and penalty, then declared position."""
        known = inputs.signals.routes

        def points(candidate: Candidate) -> float:
            return known.get(candidate.route.id, UNKNOWN_ROUTE).penalty_points

        def why(_place: int, candidate: Candidate) -> tuple[str, ...]:
            declared, penalty = f"declared position {candidate.position + 1}", points(candidate)
            return (declared, f"penalized {penalty:g}") if penalty else (declared,)

        return by_tier(candidates, lambda c: c.position + 1 + points(c), why)
