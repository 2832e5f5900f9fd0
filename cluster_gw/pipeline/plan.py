"""From a request to its ranking: candidates, constraints, strategy (rooms 3 and 5)."""

from cluster_gw.core.routing.candidates import list_candidates
from cluster_gw.core.routing.constraints import constrain
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.exploration import pick_unmeasured
from cluster_gw.core.routing.ranking import Move, Ranking, to_front
from cluster_gw.core.routing.signals import stand_back
from cluster_gw.core.routing.strategies import STRATEGIES
from cluster_gw.core.routing.strategies.base import Strategy, StrategyInputs


def strategy_of(context: RouteContext) -> Strategy:
    """Give the strategy of the request's combo."""
    return STRATEGIES[context.resolved.family, context.resolved.strategy]


def make_ranking(context: RouteContext, inputs: StrategyInputs) -> Ranking:
    """Rank what the request may be served by; pure.

    Args:
        context: the request.
        inputs: what all replicas know, and what is drawn with.
    """
    resolved = context.resolved
    listed, disabled = list_candidates(resolved)
    eligible, excluded = constrain(listed, context)
    strategy = strategy_of(context)
    order = strategy.rank(eligible, context, inputs)
    candidates = order.candidates
    moves: tuple[Move, ...] = ()
    if resolved.scoring.explore_unmeasured:
        tried = pick_unmeasured(eligible, context, inputs)
        if tried is not None:
            candidates = to_front(candidates, tried)
            moves = (Move(route=tried.route.id, reason="explore unmeasured"),)
    if inputs.signals.barred:
        candidates, behind = stand_back(candidates, inputs.signals, inputs.now_s)
        moves += behind
    return Ranking(
        combo=resolved.combo,
        family=resolved.family,
        strategy=strategy.name,
        order=order,
        candidates=candidates,
        moves=moves,
        snapshot=inputs.signals.version,
        excluded=disabled + excluded,
    )
