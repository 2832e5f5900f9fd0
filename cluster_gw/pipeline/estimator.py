"""What this worker knows about estimates: read and taught in memory, exchanged in the background.

A request only looks up two ratios here (room 6) and leaves its lesson (room 10);
`background/learner` carries lessons to the others and brings back what all have learned.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.estimate import (
    PLAIN,
    EstimatePolicy,
    Learned,
    Lesson,
    Ratios,
    correct,
    raised_at_most,
    ratios_of,
)
from cluster_gw.core.outcome.charge import REPORTED, Charge
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.pair import Pair
from cluster_gw.pipeline.targets import Target
from cluster_gw.units import ClientId, RouteId

MAX_PAIRS: Final = 10_000  # clients times routes; others are estimated by the heuristic
IDLE_LOOKS: Final = 450  # a pair nobody used for a quarter of an hour is forgotten
SWEEP_LOOKS: Final = 60  # how often that is looked after: it takes a look at all pairs
NOBODY: Final[Mapping[RouteId, Pair]] = MappingProxyType({})
ASK_AGAIN_LOOKS: Final = 5  # how often what others learned is asked for while a pair is in use


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
        self._used: list[Pair] = []
        self._look = 0

    def demand(self, exchange: Exchange, target: Target) -> Demand:
        """What a request that is to be admitted probably takes of a target."""
        if not exchange.runtime.policy.estimates.learn:
            return exchange.context.demand
        exchange.pair = pair = self._pair(exchange.client, target.route.id)
        if pair is None:
            return exchange.context.demand
        if not pair.is_used:
            self._use(pair)
        return corrected(exchange, pair.ratios, exchange.most_tokens_of(target))

    def known(self, exchange: Exchange, target: Target) -> Demand:
        """The same of a target that it may not be sent to."""
        ratios = self._ratios(exchange, target.route.id)
        return corrected(exchange, ratios, exchange.most_tokens_of(target))

    def largest(self, exchange: Exchange, allowance: Allowance) -> Demand:
        """What a request takes at most on any route of its ranking, each side by itself."""
        found = [self._ratios(exchange, c.route.id) for c in exchange.ranking.candidates]
        if all(ratios is PLAIN for ratios in found):
            return exchange.context.demand
        ratios = Ratios(max(one.input for one in found), max(one.output for one in found))
        bounds = raised_at_most((allowance.tpm, allowance.monthly_tokens))
        return corrected(exchange, ratios, bounds)

    def teach(self, exchange: Exchange, charge: Charge) -> None:
        """Take the fact of a whole answer; what was only estimated teaches nothing."""
        pair = exchange.pair
        if pair is None or charge.source is not REPORTED:
            return
        output_tokens = charge.output_tokens
        pair.lesson.note(exchange.context.demand, charge.tokens - output_tokens, output_tokens)
        if not pair.is_used:  # it was exchanged since the request was admitted
            self._use(pair)

    def take_due(self) -> dict[ClientId, dict[RouteId, Learned]]:
        """Give what is to be exchanged now; called once a look."""
        self._look += 1
        due: dict[ClientId, dict[RouteId, Learned]] = {}
        later: list[Pair] = []
        for pair in self._used:
            if pair.lesson.requests or self._look - pair.told_at > ASK_AGAIN_LOOKS:
                due.setdefault(pair.client, {})[pair.route] = pair.lesson.sums()
                pair.lesson, pair.told_at, pair.is_used = Lesson(), self._look, False
            else:
                later.append(pair)
        self._used = later
        if self._look % SWEEP_LOOKS == 0:
            self._forget_idle()
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
            pair = Pair(client, route, self._look - ASK_AGAIN_LOOKS)
            self._pairs.setdefault(client, {})[route] = pair
            self.pairs += 1
        return pair

    def _ratios(self, exchange: Exchange, route: RouteId) -> Ratios:
        pair = self._pairs.get(exchange.client, NOBODY).get(route)
        if pair is None or not exchange.runtime.policy.estimates.learn:
            return PLAIN
        return pair.ratios

    def _use(self, pair: Pair) -> None:
        pair.is_used = True
        self._used.append(pair)

    def _forget_idle(self) -> None:
        for client, by_route in list(self._pairs.items()):
            for route, pair in list(by_route.items()):
                if not pair.is_used and self._look - pair.told_at > IDLE_LOOKS:
                    del by_route[route]
                    self.pairs -= 1
            if not by_route:
                del self._pairs[client]


def corrected(exchange: Exchange, ratios: Ratios, most_tokens: int | None) -> Demand:
    """The heuristic's estimate times what was learned, within what request and limits allow."""
    guess, request = exchange.context.demand, exchange.request
    if ratios is PLAIN:
        return guess
    asked = request.max_tokens
    return correct(
        guess,
        ratios,
        most_output_tokens=None if asked is None else asked * request.choices,
        most_tokens=most_tokens,
    )
