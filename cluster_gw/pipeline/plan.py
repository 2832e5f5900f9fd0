"""From a request to its ranking: candidates, constraints, strategy (rooms 3 and 5)."""

from typing import Final

from cluster_gw.core.routing.candidates import list_candidates
from cluster_gw.core.routing.catalog import Candidate, Exclusion
from cluster_gw.core.routing.constraints import constrain, spare_the_tight, told_truly
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.exploration import pick_any, pick_unmeasured
from cluster_gw.core.routing.ranking import Move, Ranking, to_front
from cluster_gw.core.routing.signals import stand_back
from cluster_gw.core.routing.stickiness import REFUSED_TOOLS, stay
from cluster_gw.core.routing.strategies import STRATEGIES
from cluster_gw.core.routing.strategies.base import Strategy, StrategyInputs
from cluster_gw.core.routing.wished_order import in_wished_order

NO_MOVES: Final[tuple[Move, ...]] = ()
NOBODY: Final[frozenset[tuple[str, str]]] = frozenset()


def strategy_of(context: RouteContext) -> Strategy:
    """Give the strategy of the request's combo."""
    return STRATEGIES[context.resolved.family, context.resolved.strategy]


def make_ranking(
    context: RouteContext, inputs: StrategyInputs, strategy: Strategy | None = None
) -> Ranking:
    """Rank what the request may be served by; pure.

    Args:
        context: the request.
        inputs: what all replicas know, and what is drawn with.
        strategy: instead of that of the request's combo.
    """
    resolved = context.resolved
    listed, disabled = list_candidates(resolved)
    if disabled:
        disabled = told_truly(disabled, context)
    eligible, excluded = constrain(listed, context)
    strategy = strategy or strategy_of(context)
    order = strategy.rank(eligible, context, inputs)
    candidates, spared, wishes = order.candidates, NO_MOVES, context.request.wishes
    if wishes is not None and wishes.sort is not None:
        candidates, spared = in_wished_order(candidates, context, inputs.signals, wishes.sort)
    if resolved.windows:
        candidates, tight = spare_the_tight(candidates, context)
        spared += tight
    candidates, moves = _moved(candidates, eligible, (*disabled, *excluded), context, inputs)
    return Ranking(
        combo=resolved.combo,
        family=resolved.family,
        strategy=strategy.name,
        order=order,
        candidates=candidates,
        moves=spared + moves,
        snapshot=inputs.signals.version,
        excluded=disabled + excluded,
    )


def _moved(
    candidates: tuple[Candidate, ...],
    eligible: tuple[Candidate, ...],
    excluded: tuple[Exclusion, ...],
    context: RouteContext,
    inputs: StrategyInputs,
) -> tuple[tuple[Candidate, ...], tuple[Move, ...]]:
    """What comes after the strategy: a pin, else a try out of turn; then what is barred.

    Who wishes for an order of his own is neither kept on a route nor sent elsewhere to learn of it.
    """
    resolved, signals = context.resolved, inputs.signals
    toolless = inputs.toolless if context.needs.tools else NOBODY
    moves: tuple[Move, ...] = ()
    is_pinned, wishes = False, context.request.wishes
    is_sorted = wishes is not None and wishes.sort is not None
    if toolless:
        candidates, moves = put_last(candidates, toolless)
    if inputs.pinned is not None and not is_sorted:
        now_s, policy = inputs.now_s, resolved.sticky
        stayed = stay(
            candidates, excluded, inputs.pinned, policy, signals, now_s, toolless=toolless
        )
        candidates, is_pinned = stayed.candidates, stayed.holds
        moves += () if stayed.move is None else (stayed.move,)
    if not is_pinned and not is_sorted:
        tried, reason = None, "explore"
        if resolved.scoring.explore_unmeasured:
            tried, reason = pick_unmeasured(eligible, context, inputs), "explore unmeasured"
        elif resolved.scoring.exploration:
            tried = pick_any(candidates, context, inputs)
        if tried is not None:
            candidates = to_front(candidates, tried)
            moves += (Move(route=tried.route.id, reason=reason),)
    if signals.barred:
        candidates, behind = stand_back(candidates, signals, inputs.now_s)
        moves += behind
        if toolless:  # also behind what may not be asked now: that may have changed when it is
            candidates, _ = put_last(candidates, toolless)
    return candidates, moves


def put_last(
    candidates: tuple[Candidate, ...], toolless: frozenset[tuple[str, str]]
) -> tuple[tuple[Candidate, ...], tuple[Move, ...]]:
    """Put routes whose model has recently refused tools behind all others of their tier."""
    moves = tuple(
        [
            Move(route=one.route.id, reason=REFUSED_TOOLS)
            for one in candidates
            if one.route.is_one_of(toolless)
        ]
    )
    if not moves:
        return candidates, ()
    # A stable sort: among the others, and those, the order stays.
    return tuple(
        sorted(candidates, key=lambda c: (c.match_tier, c.route.is_one_of(toolless)))
    ), moves
