"""Declared order: the first member that can serve, serves."""

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Order
from cluster_gw.core.routing.strategies.base import StrategyInputs


class Priority:
    """Order by declared position alone."""

    family = "classic"
    name = "priority"
    needs_cursor = False
    needs_last_good = False

    def rank(
        self,
        candidates: tuple[Candidate, ...],
        context: RouteContext,  # noqa: ARG002 - order does not depend on the request
        inputs: StrategyInputs,  # noqa: ARG002
    ) -> Order:
        """Give candidates by tier and declared position."""
        if len(candidates) <= 1:
            return Order(candidates=candidates)
        return Order(candidates=tuple(sorted(candidates, key=lambda c: (c.match_tier, c.position))))
