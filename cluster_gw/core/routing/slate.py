"""Candidates side by side: what does not change between the requests of one snapshot, as arrays.

A family of scoring strategies has a slate of its own with the columns it draws and weighs. All that
depends on the candidates and the snapshot only is in it; a request adds its draw and its weights.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec
import numpy as np

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.posterior import Floats, column


class MultiplierColumn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A guardrail, of each candidate.

    Attributes:
        name: of the multiplier.
        values: `(n,)`, at least 0.
        detail: tells what that of a row was made of.
    """

    name: str
    values: Floats
    detail: Callable[[int], str]


class FactorColumn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A weighted signal, but for its weight and values, which a request gives.

    Attributes:
        name: of the factor.
        source: tells whether the value of a row is `measured`, `configured` or a `prior`.
        samples: attempts each value rests on, by weight; None where nothing is measured.
    """

    name: str
    source: Callable[[int], str]
    samples: Floats | None = None


class Slate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What scoring needs of some candidates whatever the request is.

    Attributes:
        candidates: in the order of every column.
        factors: what is weighed, in order.
        multipliers: each with its values.
        product: of all of them, `(n,)`.
        ties: `(n,)` each, the least important first, by which candidates are ordered that have the
            same score and tier; empty when their own order decides.
        tiers: `(n,)`; None when all are in one.
    """

    candidates: tuple[Candidate, ...]
    factors: tuple[FactorColumn, ...]
    multipliers: tuple[MultiplierColumn, ...] = ()
    product: Floats
    ties: tuple[Floats, ...] = ()
    tiers: Floats | None = None


def product_of(multipliers: Sequence[MultiplierColumn], size: int) -> Floats:
    """Multiply guardrails, from the left as `math.prod` does."""
    product = np.ones(size)
    for multiplier in multipliers:
        product = product * multiplier.values
    return product


def tiers_of(candidates: Sequence[Candidate]) -> Floats | None:
    """The match tiers; None when all are the same."""
    tiers = [candidate.match_tier for candidate in candidates]
    return column(tiers) if len(set(tiers)) > 1 else None


def ties_of(candidates: Sequence[Candidate], zeroed: Floats | None = None) -> tuple[Floats, ...]:
    """What decides between equal scores.

    Args:
        candidates: at their declared places.
        zeroed: 1 for those that come last whatever the declared order says.
    """
    positions = [candidate.position for candidate in candidates]
    in_order = all(one < other for one, other in pairwise(positions))
    declared = () if in_order else (column(positions),)
    return declared if zeroed is None or not zeroed.any() else (*declared, zeroed)


def scaled(values: Floats) -> Floats:
    """Scale to 0..1 over the candidates; all equal is 1 for all of them."""
    if not values.size:
        return values
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.ones(values.size)
