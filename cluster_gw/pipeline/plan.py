"""From a request to its ranking: candidates, constraints, strategy (rooms 3 and 5)."""

from cluster_gw.core.routing.candidates import list_candidates
from cluster_gw.core.routing.constraints import constrain
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Ranking
from cluster_gw.core.routing.signals import stand_back
from cluster_gw.core.routing.strategies import STRATEGIES
from cluster_gw.core.routing.strategies.base import StrategyInputs


def needs_cursor(context: RouteContext) -> bool:
    """Whether the request's strategy needs the fleet's cursor read first."""
    return STRATEGIES[context.resolved.strategy].needs_cursor


def make_ranking(context: RouteContext, inputs: StrategyInputs, now_s: float) -> Ranking:
    """Rank what the request may be served by; pure, and the same on every replica.

    Args:
        context: the request.
        inputs: what all replicas know.
        now_s: the clock of the times in `inputs.signals`.
    """
    resolved = context.resolved
    candidates, disabled = list_candidates(resolved)
    eligible, excluded = constrain(candidates, context)
    strategy = STRATEGIES[resolved.strategy]
    ranked = strategy.rank(eligible, context, inputs)
    if inputs.signals.barred:
        ranked = stand_back(ranked, inputs.signals, now_s)
    return Ranking(
        combo=resolved.combo,
        family=resolved.family,
        strategy=strategy.name,
        ranked=ranked,
        snapshot=inputs.signals.version,
        excluded=disabled + excluded,
    )
