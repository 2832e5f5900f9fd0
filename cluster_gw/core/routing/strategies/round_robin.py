"""Each request starts one place further: load spreads evenly over the members that can serve."""

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Listed, in_tiers
from cluster_gw.core.routing.strategies.base import StrategyInputs


class RoundRobin:
    """Rotate the declared order by the fleet's cursor, inside each match tier."""

    family = "classic"
    name = "round-robin"
    needs_cursor = True
    needs_last_good = False

    def rank(
        self,
        candidates: tuple[Candidate, ...],
        context: RouteContext,  # noqa: ARG002 - order does not depend on the request
        inputs: StrategyInputs,
    ) -> Listed:
        """Give candidates by tier, rotated by the cursor within the tier."""
        turned: list[Candidate] = []
        for members in in_tiers(candidates):
            start = inputs.cursor % len(members)
            turned += members[start:] + members[:start]
        cursor = inputs.cursor
        return Listed(
            candidates=tuple(turned),
            why=lambda place, _: (f"turn {cursor}, place {place + 1}",),
        )
