"""How a request would be routed now: everything is asked, nothing is taken or written."""

import contextlib
from itertools import groupby

import msgspec

from cluster_gw.core.limits.estimate import NOTHING, PLAIN, Ratios, ratios_of
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.strategies.base import Strategy
from cluster_gw.errors import RecordUnreadableError
from cluster_gw.pipeline.backlog import KeyOrder
from cluster_gw.pipeline.condition import Conditions
from cluster_gw.pipeline.continuing import targets_of
from cluster_gw.pipeline.estimator import corrected
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.memory import Memory, Recalled
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.estimates import ROUTES_AT_ONCE, Estimates
from cluster_gw.store.gates import Gates
from cluster_gw.units import RouteId


class Foresight(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked.

    Attributes:
        memory: what earlier requests left.
        conditions: what is known of models, keys and providers.
        estimates: what all workers learned of the size of requests.
        gates: what Redis would refuse.
    """

    memory: Memory
    conditions: Conditions
    estimates: Estimates
    gates: Gates

    async def recall(self, context: RouteContext, strategy: Strategy) -> Recalled:
        """Tell what earlier requests left for this one.

        Raises:
            StoreLostError: Redis is away.
        """
        return await self.memory.look(context, strategy)

    async def ask(self, exchange: Exchange) -> None:
        """Put the keys of each route in order, and ask for each target what refuses it.

        Both are noted in the exchange, as if it had been served up to there.

        Raises:
            StoreLostError: Redis is away.
        """
        policy = exchange.runtime.policy
        exchange.keys = KeyOrder(
            exchange.inputs, exchange.turns.look, roomiest_first=policy.roomiest_key_first
        )
        ordered: list[Target] = []
        for _, of_route in groupby(targets_of(exchange), key=lambda one: one.route.id):
            ordered += exchange.keys.order(list(of_route))
        barred = {id(one): self.conditions.barring(one) for one in ordered}
        free = [one for one in ordered if barred[id(one)] is None]
        ratios = await self._ratios(exchange)
        refusals = await self.gates.look(
            (
                exchange.limits_of(one),
                corrected(exchange, ratios.get(one.route.id, PLAIN), exchange.most_tokens_of(one)),
            )
            for one in free
        )
        barred.update(zip(map(id, free), refusals, strict=True))
        exchange.refused = [
            (one, refusal) for one in ordered if (refusal := barred[id(one)]) is not None
        ]

    async def _ratios(self, exchange: Exchange) -> dict[RouteId, Ratios]:
        """What all workers know of this client's requests to each route; nothing is taught."""
        policy = exchange.runtime.policy.estimates
        routes = [one.route.id for one in exchange.ranking.candidates] if policy.learn else []
        found: dict[RouteId, Ratios] = {}
        for first in range(0, len(routes), ROUTES_AT_ONCE):
            asked = dict.fromkeys(routes[first : first + ROUTES_AT_ONCE], NOTHING)
            with contextlib.suppress(RecordUnreadableError):  # then the text alone tells
                known = await self.estimates.learn(exchange.client, asked)
                found.update((route, ratios_of(one, policy)) for route, one in known.items())
        return found
