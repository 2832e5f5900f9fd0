"""How reliable a route is, as a distribution: Beta(successes + 1, failures + 1).

Thompson sampling ranks by one draw for each candidate, so that what is little known is tried now
and then and what failed often is left alone. Without chance the mean stands in its place.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
"""One number for each candidate, `(n,) float64`."""

Chance = np.random.Generator
"""A source of randomness; whoever ranks passes it in."""


def seed_chance(seed: int) -> Chance:
    """Give a source of randomness; the same seed gives the same draws."""
    return np.random.Generator(np.random.SFC64(seed))


def column(values: Iterable[float]) -> Floats:
    """Give numbers, one for each candidate, as an array."""
    return np.array(list(values), dtype=np.float64)


def draw_reliability(alpha: Floats, beta: Floats, chance: Chance | None) -> Floats:
    """Draw a reliability for each candidate, or give its mean when there is no `chance`.

    Args:
        alpha: first parameters, at least 1.
        beta: second parameters, at least 1.
        chance: what is drawn with.

    Returns:
        `(n,)` in 0..1.
    """
    return alpha / (alpha + beta) if chance is None else chance.beta(alpha, beta)
