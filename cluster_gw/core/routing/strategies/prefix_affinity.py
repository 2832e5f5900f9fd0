"""The same beginning of a prompt goes to the same route, so that the provider finds it cached."""

import numpy as np

from cluster_gw.core.routing.affinity import rendezvous, rotation, seed, seeds
from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Listed, in_tiers
from cluster_gw.core.routing.strategies.base import StrategyInputs


class PrefixAffinity:
    """Order by the weight each route has for the prompt; or rotate, as the first generation did."""

    family = "classic"
    name = "prefix-affinity"
    needs_cursor = False
    needs_last_good = False

    def rank(
        self,
        candidates: tuple[Candidate, ...],
        context: RouteContext,
        inputs: StrategyInputs,  # noqa: ARG002 - order depends on the request alone
    ) -> Listed:
        """Give candidates by tier, within it as the prompt wants them."""
        ordered: list[Candidate] = []
        for members in in_tiers(candidates):
            if context.resolved.scoring.is_fnv:
                start = rotation(context.request.affinity_text, len(members))
                ordered += members[start:] + members[:start]
            else:
                weights = rendezvous(
                    seeds([c.route.id for c in members]), seed(context.affinity_key)
                )
                ordered += [members[row] for row in np.argsort(weights)[::-1].tolist()]
        return Listed(
            candidates=tuple(ordered),
            why=lambda place, _: (f"prefix-affinity, place {place + 1}",),
        )
