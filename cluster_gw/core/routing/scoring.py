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


class AdjustmentColumn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A term added after the multipliers, of each candidate; 0 is none."""

    name: str
    values: Floats


class Scored(Order, frozen=True, kw_only=True, gc=False):
    """An order by score.

    Attributes:
        slate: the candidates, in the order of every column.
        rows: row of the columns, for each place.
        weights: of the slate's factors in this request.
        values: the same, `(n,)` in 0..1 each.
        adjustments: of this request.
        steps: scores in steps of 1e-9, `(n,)`, by row.
        why: gives the reasons of a row.
    """

    slate: Slate
    rows: list[int]
    weights: tuple[float, ...]
    values: tuple[Floats, ...]
    adjustments: tuple[AdjustmentColumn, ...]
    steps: Floats
    why: Callable[[int], tuple[str, ...]]

    def score_at(self, place: int) -> float:
        """The score of the candidate at a place, from 0."""
        return float(self.steps[self.rows[place]]) / SCORE_STEPS

    def reasons_at(self, place: int) -> tuple[str, ...]:
        """Why the candidate is at a place."""
        return (f"score {self.score_at(place):.3f}", *self.why(self.rows[place]))

    def ranked_at(self, place: int) -> Ranked:
        """Everything about the candidate at a place."""
        row = self.rows[place]
        factors = self._factors(row)
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

    def _factors(self, row: int) -> tuple[Factor, ...]:
        weighed = zip(self.slate.factors, self.weights, self.values, strict=True)
        return tuple(
            [
                Factor(
                    name=column.name,
                    weight=weight,
                    value=float(values[row]),
                    contribution=float(values[row]) * weight,
                    source=column.source(row),
                    samples=0.0 if column.samples is None else float(column.samples[row]),
                )
                for column, weight, values in weighed
            ]
        )


def order_by_score(
    slate: Slate,
    weights: tuple[float, ...],
    values: tuple[Floats, ...],
    *,
    adjustments: tuple[AdjustmentColumn, ...] = (),
    why: Callable[[int], tuple[str, ...]],
) -> Scored:
    """Score candidates and put them in order.

    Args:
        slate: the candidates, with what is weighed and what guards them.
        weights: of its factors, at least one.
        values: of its factors, `(n,)` in 0..1 each.
        adjustments: in the order in which they are added.
        why: gives the reasons of a row of the slate.
    """
    scores = raw_scores(slate, weights, values, adjustments)
    scores *= SCORE_STEPS
    steps = np.rint(scores, out=scores)
    rows = sort_rows(slate, steps)
    candidates = slate.candidates
    return Scored(
        candidates=tuple([candidates[row] for row in rows]),
        slate=slate,
        rows=rows,
        weights=weights,
        values=values,
        adjustments=adjustments,
        steps=steps,
        why=why,
    )


def raw_scores(
    slate: Slate,
    weights: tuple[float, ...],
    values: tuple[Floats, ...],
    adjustments: tuple[AdjustmentColumn, ...] = (),
) -> Floats:
    """Give scores before they are rounded; see `order_by_score`.

    The steps are those of `total_score`, in its order: a score can be recomputed from its parts.
    """
    scores = values[0] * weights[0]
    for place in range(1, len(values)):
        scores += values[place] * weights[place]
    scores *= slate.product
    for adjustment in adjustments:
        scores += adjustment.values
    return scores


def sort_rows(slate: Slate, steps: Floats) -> list[int]:
    """Give the rows of a slate by tier, score and declared position, best first."""
    if slate.tiers is None and not slate.ties:
        places = np.argsort(-steps, kind="stable")
    else:
        tiers = () if slate.tiers is None else (slate.tiers,)
        places = np.lexsort((*slate.ties, -steps, *tiers))
    rows: list[int] = places.tolist()
    return rows
