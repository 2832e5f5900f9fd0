"""What every strategy is: a full ranking from values, with nothing kept between two calls."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Ranked
from cluster_gw.core.routing.signals import NO_SIGNALS, Signals


class StrategyInputs(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """State a strategy may use, read before it runs.

    Attributes:
        cursor: position of the fleet's round-robin cursor for this combo, 0 when not asked for.
        signals: what the snapshot says that all workers rank by.
    """

    cursor: int = 0
    signals: Signals = NO_SIGNALS


class Strategy(Protocol):
    """One way to order candidates."""

    name: str
    needs_cursor: bool

    def rank(
        self, candidates: Sequence[Candidate], context: RouteContext, inputs: StrategyInputs
    ) -> tuple[Ranked, ...]:
        """Give all candidates, best first, each with its reasons."""
        ...
