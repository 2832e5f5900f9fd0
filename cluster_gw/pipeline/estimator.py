"""What this worker knows about estimates: read and taught in memory, exchanged in the background.

A request only looks up two ratios here (room 6) and leaves its lesson (room 10);
`background/learner` carries lessons to the others and brings back what all have learned.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.estimate import (
    PLAIN,
    EstimatePolicy,
    Learned,
    Lesson,
    Ratios,
    correct,
    ratios_of,
)
from cluster_gw.core.outcome.charge import Charge, TokenSource
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.store.lease import Lease
from cluster_gw.units import ClientId, RouteId

MAX_PAIRS: Final = 10_000  # clients times routes; others are estimated by the heuristic
IDLE_LOOKS: Final = 450  # a pair nobody used for a quarter of an hour is forgotten
NOBODY: Final[Mapping[RouteId, Any]] = MappingProxyType({})
ASK_AGAIN_LOOKS: Final = 5  # how often what others learned is asked for while a pair is in use


class Pair(msgspec.Struct, gc=False):
    """One client on one route.

    Attributes:
        ratios: what its estimates are multiplied by.
        lesson: what is still to be told.
        is_used: since the last look.
        looks: since it was last exchanged; counts up from a pair that nobody has asked about.
        idle: looks since it was last used.
    """

    ratios: Ratios = PLAIN
    lesson: Lesson = msgspec.field(default_factory=Lesson)
    is_used: bool = True
    looks: int = ASK_AGAIN_LOOKS
    idle: int = 0


class Estimator:
    """Corrects estimates and collects what settlements teach.

    Attributes:
        pairs: how many clients and routes are known together.
        lost: lessons that were not told, because Redis was away.
    """

    def __init__(self) -> None:
        self.pairs = 0
        self.lost = 0
        self._pairs: dict[ClientId, dict[RouteId, Pair]] = {}

    def demand(self, exchange: Exchange, route: RouteId) -> Demand:
        """What a request that is to be admitted probably takes of a route."""
        if not exchange.runtime.policy.estimates.learn:
            return exchange.context.demand
        pair = self._pair(exchange.client, route)
        if pair is None:
            return exchange.context.demand
        pair.is_used = True
        return corrected(exchange, pair.ratios)

    def known(self, exchange: Exchange, route: RouteId) -> Demand:
        """The same of a route that it may not be sent to."""
        pair = self._pairs.get(exchange.client, NOBODY).get(route)
        if pair is None or not exchange.runtime.policy.estimates.learn:
            return exchange.context.demand
        return corrected(exchange, pair.ratios)

    def largest(self, exchange: Exchange) -> Demand:
        """What a request takes at most on any route of its ranking, each side by itself."""
        demands = [self.known(exchange, ranked.route.id) for ranked in exchange.ranking.ranked]
        if not demands:
            return exchange.context.demand
        return Demand(
            input_tokens=max(demand.input_tokens for demand in demands),
            output_tokens=max(demand.output_tokens for demand in demands),
        )

    def teach(self, exchange: Exchange, lease: Lease, charge: Charge) -> None:
        """Take the fact of a whole answer; what was only estimated teaches nothing."""
        if charge.source is not TokenSource.REPORTED or not exchange.runtime.policy.estimates.learn:
            return
        pair = self._pair(exchange.client, RouteId(f"{lease.target.provider}/{lease.target.model}"))
        if pair is not None:
            output_tokens = charge.output_tokens
            pair.lesson.note(exchange.context.demand, charge.tokens - output_tokens, output_tokens)

    def take_due(self) -> dict[ClientId, dict[RouteId, Learned]]:
        """Give what is to be exchanged now, and forget who is idle; called once a look."""
        due: dict[ClientId, dict[RouteId, Learned]] = {}
        for client, by_route in list(self._pairs.items()):
            for route, pair in list(by_route.items()):
                pair.looks += 1
                pair.idle = 0 if pair.is_used else pair.idle + 1
                if pair.lesson.requests or (pair.is_used and pair.looks > ASK_AGAIN_LOOKS):
                    due.setdefault(client, {})[route] = pair.lesson.sums()
                    pair.lesson, pair.looks, pair.is_used = Lesson(), 0, False
                elif pair.idle > IDLE_LOOKS:
                    del by_route[route]
                    self.pairs -= 1
            if not by_route:
                del self._pairs[client]
        return due

    def take_over(
        self, client: ClientId, known: dict[RouteId, Learned], policy: EstimatePolicy
    ) -> None:
        """Work by what all workers know from now on."""
        for route, learned in known.items():
            pair = self._pairs.get(client, {}).get(route)
            if pair is not None:
                ratios = ratios_of(learned, policy)
                pair.ratios = PLAIN if ratios == PLAIN else ratios

    def _pair(self, client: ClientId, route: RouteId) -> Pair | None:
        by_route = self._pairs.get(client)
        pair = None if by_route is None else by_route.get(route)
        if pair is None and self.pairs < MAX_PAIRS:
            pair = Pair()
            self._pairs.setdefault(client, {})[route] = pair
            self.pairs += 1
        return pair


def corrected(exchange: Exchange, ratios: Ratios) -> Demand:
    """The heuristic's estimate times what was learned, within what the request allows."""
    guess, request = exchange.context.demand, exchange.request
    if ratios is PLAIN:
        return guess
    asked = request.max_tokens
    return correct(guess, ratios, None if asked is None else asked * request.choices)
