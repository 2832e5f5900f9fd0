"""The bandit family: reliability by Thompson sampling, speed and intelligence, under guardrails."""

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.evidence import UNMEASURED_BELOW, Evidence, evidence_of
from cluster_gw.core.routing.presets import Task
from cluster_gw.core.routing.ranking import Order
from cluster_gw.core.routing.scoring import order_by_score
from cluster_gw.core.routing.strategies.base import StrategyInputs, Weighted


class Bandit(Weighted):
    """Order by score."""

    family = "bandit"
    needs_last_good = False

    def rank(
        self, candidates: tuple[Candidate, ...], context: RouteContext, inputs: StrategyInputs
    ) -> Order:
        """Give candidates by tier and score; one draw for each, none without chance."""
        if not candidates:
            return Order(candidates=candidates)
        resolved, signals = context.resolved, inputs.signals
        scoring, evidence = resolved.scoring, evidence_of(candidates, resolved, signals)
        task = context.task if scoring.task_share else Task.AUTO
        is_peak = scoring.peak is not None and scoring.peak_hours.holds(
            signals.server_ms(inputs.now_s)
        )
        weights = scoring.weights(task, is_peak=is_peak)
        return order_by_score(
            evidence,
            weights,
            (evidence.draws.take(inputs.chance), evidence.speed, evidence.intelligence),
            why=lambda row: reasons(evidence, row, task, is_peak=is_peak),
        )


def reasons(evidence: Evidence, row: int, task: Task, *, is_peak: bool) -> tuple[str, ...]:
    """Tell in words what moved the score of a row."""
    known, candidate = evidence.known[row], evidence.candidates[row]
    found = (
        (f"match-tier {candidate.match_tier}", candidate.match_tier > 0),
        ("unmeasured", bool(evidence.samples[row] < UNMEASURED_BELOW)),
        (f"headroom {known.headroom:.3f}", known.headroom < 1.0),
        (f"penalized {known.penalty_points:g}", known.penalty_points > 0),
        (f"override {candidate.route.weight:g}", candidate.route.weight != 1.0),
        ("peak-adjusted", is_peak),
        (f"task {task}", task is not Task.AUTO),
    )
    return tuple([word for word, holds in found if holds])
