"""The better of two that are drawn: spreads load, and avoids what does badly."""

from typing import Final

from cluster_gw.core.routing.appraisal import appraisal_of
from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Listed, in_tiers, to_front
from cluster_gw.core.routing.strategies.base import StrategyInputs, by_tier

HEALTH_SHARE: Final = 0.6
RELIABILITY_SHARE: Final = 0.4
TWO: Final = 2


class TwoChoices:
    """Declared order, with the winner of two drawn routes of the best tier in front."""

    family = "classic"
    name = "p2c"
    needs_cursor = False
    needs_last_good = False

    def rank(
        self, candidates: tuple[Candidate, ...], context: RouteContext, inputs: StrategyInputs
    ) -> Listed:
        """Give candidates by tier and declared position, the winner first; without chance none."""
        listed = by_tier(candidates, lambda c: c.position, declared)
        chance = inputs.chance
        best = in_tiers(listed.candidates)[0] if candidates else []
        if chance is None or len(best) < TWO:
            return listed
        first = int(chance.integers(len(best)))
        other = (first + 1 + int(chance.integers(len(best) - 1))) % len(best)
        appraisal = appraisal_of(candidates, context.resolved, inputs.signals)
        rows = [candidates.index(best[place]) for place in (first, other)]
        scores = [
            HEALTH_SHARE * appraisal.health[row] + RELIABILITY_SHARE * appraisal.reliability[row]
            for row in rows
        ]
        winner = best[other] if scores[1] > scores[0] else best[first]

        def why(place: int, candidate: Candidate) -> tuple[str, ...]:
            told = declared(place, candidate)
            return ("p2c", *told) if candidate is winner else told

        return Listed(candidates=to_front(listed.candidates, winner), why=why)


def declared(_place: int, candidate: Candidate) -> tuple[str, ...]:
    """Why a candidate is where it is in declared order."""
    return (f"declared position {candidate.position + 1}",)
