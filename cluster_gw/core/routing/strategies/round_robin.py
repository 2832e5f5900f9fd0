"""Each request starts one place further: load spreads evenly over the members that can serve."""

from collections.abc import Sequence

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Ranked
from cluster_gw.core.routing.strategies.base import StrategyInputs


class RoundRobin:
    """Rotate the declared order by the fleet's cursor, inside each match tier."""

    name = "round-robin"
    needs_cursor = True

    def rank(
        self,
        candidates: Sequence[Candidate],
        context: RouteContext,  # noqa: ARG002 - order does not depend on the request
        inputs: StrategyInputs,
    ) -> tuple[Ranked, ...]:
        """Give candidates by tier, rotated by the cursor within the tier."""
        ranked: list[Ranked] = []
        for tier in sorted({c.match_tier for c in candidates}):
            members = [c for c in candidates if c.match_tier == tier]
            start = inputs.cursor % len(members)
            ranked.extend(
                Ranked(candidate=c, reasons=(f"turn {inputs.cursor}, place {place + 1}",))
                for place, c in enumerate(members[start:] + members[:start])
            )
        return tuple(ranked)
