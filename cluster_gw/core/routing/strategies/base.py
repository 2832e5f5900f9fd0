"""What every strategy is: a full order from values, with nothing kept between two calls."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.posterior import Chance
from cluster_gw.core.routing.ranking import Listed, Order, in_order
from cluster_gw.core.routing.signals import NO_SIGNALS, Signals
from cluster_gw.units import RouteId


class StrategyInputs(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """State a strategy may use, read before it runs.

    Attributes:
        cursor: position of the fleet's round-robin cursor for this combo, 0 when not asked for.
        signals: what the snapshot says that all workers rank by.
        last_good: route that answered last in this combo, None when nobody knows or asked.
        pinned: route that the request's run or session stays on, likewise.
        chance: what is drawn with; without it means stand in for draws and nothing is explored.
        now_s: the clock of the signals' times.
        toolless: provider and model of those that have recently refused tools.
    """

    cursor: int = 0
    signals: Signals = NO_SIGNALS
    last_good: RouteId | None = None
    pinned: RouteId | None = None
    chance: Chance | None = None
    now_s: float = 0.0
    toolless: frozenset[tuple[str, str]] = frozenset()


class Strategy(Protocol):
    """One way to order candidates.

    Attributes:
        family: of the combos that may name it.
        name: how they do.
        needs_cursor: whether it turns by the fleet's cursor.
        needs_last_good: whether it asks which route answered last.
    """

    family: str
    name: str
    needs_cursor: bool
    needs_last_good: bool

    def rank(
        self, candidates: tuple[Candidate, ...], context: RouteContext, inputs: StrategyInputs
    ) -> Order:
        """Give all candidates, best first.

        Args:
            candidates: those that can serve, at their declared places.
            context: the request.
            inputs: what else is known.
        """
        ...


class Weighted:
    """The strategies of a family that order by score: they differ by their weights alone.

    Args:
        name: of the strategy.
    """

    needs_cursor = False

    def __init__(self, name: str) -> None:
        self.name = name


def by_tier(
    candidates: tuple[Candidate, ...],
    key: Callable[[Candidate], float],
    why: Callable[[int, Candidate], tuple[str, ...]],
) -> Listed:
    """Order without scores: best tier first, then the smallest key, then declared position."""
    if len(candidates) == 1:
        return Listed(candidates=candidates, why=why)
    return Listed(candidates=in_order(candidates, key), why=why)
