"""How reliable a route is, as a distribution: Beta(successes + 1, failures + 1).

Thompson sampling ranks by one draw for each candidate, so that what is little known is tried now
and then and what failed often is left alone. Without chance the mean stands in its place.
"""

from collections.abc import Iterable
from typing import Final

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


COUNT_MAX: Final = 1e9
BLOCK: Final = 512
"""Numbers drawn at once: a call costs as much as sixty of them, and nobody waits for so few."""


class Draws:
    """Reliabilities of the same candidates, drawn for several requests at once.

    Args:
        alpha: first parameters, at least 1.
        beta: second parameters, at least 1.
    """

    __slots__ = ("_alpha", "_beta", "_block", "_chance", "_next")

    def __init__(self, alpha: Floats, beta: Floats) -> None:
        self._alpha, self._beta = alpha, beta
        self._block: npt.NDArray[np.float64] = np.empty((0, alpha.size))
        self._next = 0
        self._chance: Chance | None = None

    def take(self, chance: Chance | None) -> Floats:
        """Give a draw for each candidate, not to be changed; their means when there is no chance.

        Args:
            chance: what is drawn with; another than before begins a block of its own.
        """
        if chance is None:
            return draw_reliability(self._alpha, self._beta, None)
        if self._next >= len(self._block) or chance is not self._chance:
            size = self._alpha.size
            # One at first: candidates that come once only would throw the rest of a block away.
            rows = BLOCK // max(size, 1) if chance is self._chance else 1
            shape = max(1, rows), size
            self._block = chance.beta(self._alpha, self._beta, size=shape)
            self._next, self._chance = 0, chance
        drawn: Floats = self._block[self._next]
        self._next += 1
        return drawn


def parameters(counts: Iterable[float]) -> Floats:
    """Give parameters of Beta distributions from counts; a count that cannot be is none at all."""
    values = column(counts)
    values[~(values > 0.0)] = 0.0  # what is no number is not above 0, either
    return np.minimum(values, COUNT_MAX) + 1.0


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
