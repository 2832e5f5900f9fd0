"""What served last serves again, as long as it can."""

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Listed
from cluster_gw.core.routing.strategies.base import StrategyInputs, by_tier


class LastGood:
    """Declared order, with the last known good route first in its tier."""

    family = "classic"
    name = "lkgp"
    needs_cursor = False
    needs_last_good = True

    def rank(
        self,
        candidates: tuple[Candidate, ...],
        context: RouteContext,  # noqa: ARG002 - order does not depend on the request
        inputs: StrategyInputs,
    ) -> Listed:
        """Give candidates by tier, the last known good one before those of declared position."""
        last_good = inputs.last_good

        def why(_place: int, candidate: Candidate) -> tuple[str, ...]:
            declared = f"declared position {candidate.position + 1}"
            is_last = candidate.route.id == last_good
            return ("last-known-good", declared) if is_last else (declared,)

        return by_tier(candidates, lambda c: -1 if c.route.id == last_good else c.position, why)
