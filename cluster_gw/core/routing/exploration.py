"""Now and then a route goes first out of turn, so that it becomes known, or stays known."""

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.evidence import evidence_of
from cluster_gw.core.routing.strategies.base import StrategyInputs


def pick_unmeasured(
    candidates: tuple[Candidate, ...], context: RouteContext, inputs: StrategyInputs
) -> Candidate | None:
    """Pick a route to try out of turn; mostly None.

    A try is never spent on a route that cannot serve the request, may not be asked or has nothing
    left, that the operator has zeroed or that is not of the best tier, nor while few providers are
    usable.

    Args:
        candidates: those that can serve, at their declared places.
        context: the request, of a combo that scores.
        inputs: as for its strategy.
    """
    chance, signals = inputs.chance, inputs.signals
    share = context.resolved.scoring.explore_unmeasured
    if not share or chance is None or signals.is_degraded or chance.random() >= share:
        return None
    evidence = evidence_of(candidates, context.resolved, signals)
    found = [
        candidates[row]
        for row in evidence.tried
        if signals.may_serve(candidates[row].route, inputs.now_s)
        and not _is_refused(candidates[row], context, inputs)
    ]
    return found[int(chance.integers(len(found)))] if found else None


def pick_any(
    candidates: tuple[Candidate, ...], context: RouteContext, inputs: StrategyInputs
) -> Candidate | None:
    """Pick any route of the best tier to try out of turn, the leader included; mostly None.

    What the operator has zeroed, what may not be asked and what has nothing left is never picked.

    Args:
        candidates: best first.
        context: the request, of a combo of the classic family that scores.
        inputs: as for its strategy.
    """
    chance, signals = inputs.chance, inputs.signals
    share = context.resolved.scoring.exploration
    if chance is None or len(candidates) < 2 or chance.random() >= share:  # noqa: PLR2004
        return None
    found = [
        candidate
        for candidate in candidates
        if candidate.match_tier == candidates[0].match_tier
        and candidate.route.weight > 0
        and signals.may_serve(candidate.route, inputs.now_s)
        and not _is_refused(candidate, context, inputs)
    ]
    return found[int(chance.integers(len(found)))] if found else None


def _is_refused(candidate: Candidate, context: RouteContext, inputs: StrategyInputs) -> bool:
    """Whether a model has recently refused what the request needs."""
    return context.needs.tools and candidate.route.is_one_of(inputs.toolless)
