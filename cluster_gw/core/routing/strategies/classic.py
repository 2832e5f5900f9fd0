"""The classic family: six factors, neutral where nothing is known, and a boost for what served."""

import numpy as np

from cluster_gw.core.routing.affinity import leader
from cluster_gw.core.routing.appraisal import NEUTRAL, Appraisal, appraisal_of
from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.posterior import Floats
from cluster_gw.core.routing.ranking import Order
from cluster_gw.core.routing.scoring import (
    AdjustmentColumn,
    order_by_score,
    raw_scores,
)
from cluster_gw.core.routing.strategies.base import StrategyInputs, Weighted
from cluster_gw.units import RouteId


class Classic(Weighted):
    """Order by score."""

    family = "classic"
    needs_last_good = True

    def rank(
        self, candidates: tuple[Candidate, ...], context: RouteContext, inputs: StrategyInputs
    ) -> Order:
        """Give candidates by tier and score, held to 0..1; ties by declared position."""
        if not candidates:
            return Order(candidates=candidates)
        scoring = context.resolved.scoring
        appraisal = appraisal_of(candidates, context.resolved, inputs.signals)
        affinity = affinity_column(appraisal, context)
        weights, last_good = scoring.plain, inputs.last_good
        values = (
            appraisal.health,
            appraisal.reliability,
            appraisal.latency,
            appraisal.quality,
            affinity,
            appraisal.priority,
        )
        boost = boost_column(appraisal, last_good, scoring.lkgp_boost)
        return order_by_score(
            appraisal,
            weights,
            values,
            adjustments=held_to_one(appraisal, weights, values, boost),
            why=lambda row: reasons(appraisal, row, affinity, last_good),
        )


def affinity_column(appraisal: Appraisal, context: RouteContext) -> Floats:
    """1 for the route the prompt belongs to, 0 for the others; neutral without a prompt."""
    size = len(appraisal.candidates)
    place = leader(appraisal.routes, context, appraisal.tiers)
    if place is None:
        return np.full(size, NEUTRAL)
    values = np.zeros(size)
    values[place] = 1.0
    return values


def boost_column(appraisal: Appraisal, last_good: RouteId | None, boost: float) -> Floats | None:
    """The boost of the route that served last; None when it gets none."""
    if last_good is None or not boost:
        return None
    values = np.array([boost if one.route.id == last_good else 0.0 for one in appraisal.candidates])
    return values if values.any() else None


def held_to_one(
    appraisal: Appraisal,
    weights: tuple[float, ...],
    values: tuple[Floats, ...],
    boost: Floats | None,
) -> tuple[AdjustmentColumn, ...]:
    """Give the adjustments: the boost, and what is above 1 with it."""
    found = () if boost is None else (AdjustmentColumn(name="lkgp_boost", values=boost),)
    above = raw_scores(appraisal, weights, values, found) - 1.0
    if not (above > 0).any():
        return found
    return (*found, AdjustmentColumn(name="clamp", values=-np.maximum(above, 0.0)))


def reasons(
    appraisal: Appraisal, row: int, affinity: Floats, last_good: RouteId | None
) -> tuple[str, ...]:
    """Tell in words what moved the score of a row."""
    candidate = appraisal.candidates[row]
    found = (
        (f"match-tier {candidate.match_tier}", candidate.match_tier > 0),
        ("last-known-good", candidate.route.id == last_good),
        ("cache-affinity", bool(affinity[row] == 1.0)),
        ("half-open", bool(appraisal.health[row] < 1.0)),
        (f"override {candidate.route.weight:g}", candidate.route.weight != 1.0),
    )
    return tuple([word for word, holds in found if holds])
