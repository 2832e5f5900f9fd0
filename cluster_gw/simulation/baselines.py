"""What the bandit is compared with: other orders, under the same gates and with the same health."""

import math
from collections import deque
from typing import Final

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Listed
from cluster_gw.core.routing.strategies import STRATEGIES
from cluster_gw.core.routing.strategies.base import Strategy, StrategyInputs, by_tier
from cluster_gw.simulation.pool import ORACLE, PLAIN, Pool
from cluster_gw.simulation.world import Asked, Behaviour

LATENCIES: Final = 10


class Baseline:
    """An order without scores that changes from request to request."""

    family = "classic"
    needs_cursor = False
    needs_last_good = False

    def __init__(self, name: str) -> None:
        self.name = name

    def key(self, candidate: Candidate, inputs: StrategyInputs) -> float:
        """What candidates are ordered by, the smallest first."""
        return float(candidate.position if inputs.chance is None else inputs.chance.random())

    def rank(
        self,
        candidates: tuple[Candidate, ...],
        context: RouteContext,  # noqa: ARG002 - the order does not depend on the request
        inputs: StrategyInputs,
    ) -> Listed:
        """Give all candidates, best first."""
        keys = {candidate.route.id: self.key(candidate, inputs) for candidate in candidates}
        return by_tier(candidates, lambda c: keys[c.route.id], lambda *_: (self.name,))


class LeastLatency(Baseline):
    """The shortest mean of the last ten answers first, as the worker itself has seen them.

    A provider that has not answered yet is tried. Calls that fail have no latency.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._seen: dict[tuple[int, str], deque[float]] = {}
        self._worker = 0

    def asked_by(self, worker: int) -> None:
        """Order for a worker from now on."""
        self._worker = worker

    def answered(self, worker: int, provider: str, latency_s: float) -> None:
        """Note an answer."""
        seen = self._seen.setdefault((worker, provider), deque(maxlen=LATENCIES))
        seen.append(latency_s)

    def key(self, candidate: Candidate, inputs: StrategyInputs) -> float:  # noqa: ARG002
        """Mean latency, seconds."""
        seen = self._seen.get((self._worker, candidate.route.provider))
        return sum(seen) / len(seen) if seen else 0.0


class Weighted(Baseline):
    """At random, by fixed shares.

    Args:
        shares: of each provider.
    """

    def __init__(self, name: str, shares: dict[str, float]) -> None:
        super().__init__(name)
        self._shares = shares

    def key(self, candidate: Candidate, inputs: StrategyInputs) -> float:
        """The first of independent exponential clocks whose rates are the shares."""
        drawn = super().key(candidate, inputs)
        return -math.log1p(-drawn) / self._shares[candidate.route.provider]


class Oracle(Baseline):
    """Knows how every provider is at this very moment; only luck is hidden from it.

    Args:
        behaviours: of this run.
        deadline_s: of its requests.
    """

    def __init__(self, behaviours: tuple[Behaviour, ...], deadline_s: float) -> None:
        super().__init__(ORACLE)
        self._behaviours = {one.world.name: one for one in behaviours}
        self._deadline_s = deadline_s
        self.asked: Asked | None = None

    def key(self, candidate: Candidate, inputs: StrategyInputs) -> float:
        """What it is worth to try it first, negative."""
        behaviour = self._behaviours[candidate.route.provider]
        tokens = self.asked.output_tokens if self.asked else 1
        return -behaviour.worth(inputs.now_s, tokens, self._deadline_s)


def strategy_for(pool: Pool, behaviours: tuple[Behaviour, ...], deadline_s: float) -> Strategy:
    """Give what orders the candidates of a run."""
    match pool.strategy.removeprefix(PLAIN):
        case "random":
            return Baseline("random")
        case "least-latency":
            return LeastLatency("least-latency")
        case "weighted":
            return Weighted("weighted", dict(pool.weights))
        case "oracle":
            return Oracle(behaviours, deadline_s)
        case _:
            _, resolved = pool.combos[0]
            return STRATEGIES[resolved.family, resolved.strategy]
