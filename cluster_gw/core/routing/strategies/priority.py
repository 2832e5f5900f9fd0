"""Declared order: the first member that can serve, serves."""

from collections.abc import Sequence

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Ranked, in_order
from cluster_gw.core.routing.strategies.base import StrategyInputs


class Priority:
    """Order by declared position alone."""

    name = "priority"
    needs_cursor = False

    def rank(
        self,
        candidates: Sequence[Candidate],
        context: RouteContext,  # noqa: ARG002 - order does not depend on the request
        inputs: StrategyInputs,  # noqa: ARG002
    ) -> tuple[Ranked, ...]:
        """Give candidates by tier and declared position."""
        return in_order(
            [
                Ranked(candidate=c, reasons=(f"declared position {c.position + 1}",))
                for c in candidates
            ]
        )
