"""The one scoring engine: factors by weight, times guardrails, plus adjustments.

`score = sum of contributions * product of multipliers + sum of adjustments`, rounded to 1e-9; order
is match tier, score, declared position. All of it over arrays: only the order is made for each
request, and what led to it is told from the same arrays when somebody asks.
"""

from collections.abc import Callable

import msgspec
import numpy as np

from cluster_gw.core.routing.posterior import Floats
from cluster_gw.core.routing.ranking import (
    SCORE_STEPS,
    Adjustment,
    Factor,
    Multiplier,
    Order,
    Ranked,
)
from cluster_gw.core.routing.slate import Slate


class FactorColumn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One weighted signal, of each candidate.

    Attributes:
        name: of the factor.
        weight: 0 to 1.
        values: `(n,)` in 0..1.
        source: tells whether that of a row is `measured`, `configured` or a `prior`.
        samples: attempts each rests on, by weight; None where nothing is measured.
    """

    name: str
    weight: float
    values: Floats
    source: Callable[[int], str]
    samples: Floats | None = None


class AdjustmentColumn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A term added after the multipliers, of each candidate; 0 is none."""

    name: str
    values: Floats


class Scored(Order, frozen=True, kw_only=True, gc=False):
    """An order by score.

    Attributes:
        slate: the candidates, in the order of every column.
        rows: row of the columns, for each place.
        factors: their weights and values in this request.
        adjustments: of this request.
        scores: `(n,)`, by row.
        why: gives the reasons of a row.
    """

    slate: Slate
    rows: list[int]
    factors: tuple[FactorColumn, ...]
    adjustments: tuple[AdjustmentColumn, ...]
    scores: Floats
    why: Callable[[int], tuple[str, ...]]

    def score_at(self, place: int) -> float:
        """The score of the candidate at a place, from 0."""
        return float(self.scores[self.rows[place]])

    def reasons_at(self, place: int) -> tuple[str, ...]:
        """Why the candidate is at a place."""
        return (f"score {self.score_at(place):.3f}", *self.why(self.rows[place]))

    def ranked_at(self, place: int) -> Ranked:
        """Everything about the candidate at a place."""
        row = self.rows[place]
        factors = tuple([_factor(one, row) for one in self.factors])
        base = 0.0
        for factor in factors:
            base += factor.contribution
        return Ranked(
            candidate=self.candidates[place],
            score=self.score_at(place),
            base=base,
            factors=factors,
            multipliers=tuple(
                [
                    Multiplier(name=m.name, value=float(m.values[row]), detail=m.detail(row))
                    for m in self.slate.multipliers
                ]
            ),
            adjustments=tuple(
                [
                    Adjustment(name=one.name, delta=float(one.values[row]))
                    for one in self.adjustments
                    if one.values[row]
                ]
            ),
            reasons=self.reasons_at(place),
        )


def order_by_score(
    slate: Slate,
    factors: tuple[FactorColumn, ...],
    *,
    adjustments: tuple[AdjustmentColumn, ...] = (),
    why: Callable[[int], tuple[str, ...]],
) -> Scored:
    """Score candidates and put them in order.

    Args:
        slate: the candidates, with what guards them.
        factors: at least one.
        adjustments: in the order in which they are added.
        why: gives the reasons of a row of the slate.
    """
    # The steps of `total_score`, in its order: a score can be recomputed from its parts.
    scores = factors[0].values * factors[0].weight
    for factor in factors[1:]:
        scores += factor.values * factor.weight
    scores *= slate.product
    for adjustment in adjustments:
        scores += adjustment.values
    scores *= SCORE_STEPS
    np.rint(scores, out=scores)
    scores /= SCORE_STEPS
    rows = sort_rows(slate, scores)
    candidates = slate.candidates
    return Scored(
        candidates=tuple([candidates[row] for row in rows]),
        slate=slate,
        rows=rows,
        factors=factors,
        adjustments=adjustments,
        scores=scores,
        why=why,
    )


def sort_rows(slate: Slate, scores: Floats) -> list[int]:
    """Give the rows of a slate by tier, score and declared position, best first."""
    if slate.tiers is None and not slate.ties:
        places = np.argsort(-scores, kind="stable")
    else:
        tiers = () if slate.tiers is None else (slate.tiers,)
        places = np.lexsort((*slate.ties, -scores, *tiers))
    rows: list[int] = places.tolist()
    return rows


def _factor(one: FactorColumn, row: int) -> Factor:
    value = float(one.values[row])
    return Factor(
        name=one.name,
        weight=one.weight,
        value=value,
        contribution=value * one.weight,
        source=one.source(row),
        samples=0.0 if one.samples is None else float(one.samples[row]),
    )
