"""Answers that an upstream keeps: what goes on from one must reach the key that has it."""

from cluster_gw.core.routing.context import RouteContext
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.memory import Keeper, Memory
from cluster_gw.pipeline.targets import Target, list_targets


def is_lost(context: RouteContext, keeper: Keeper | None) -> bool:
    """Whether a request goes on from an answer that nobody keeps who could serve it."""
    if not context.request.continues:
        return False
    resolved = context.resolved
    return keeper is None or not any(
        key.id == keeper.key
        for route in (*resolved.routes, *resolved.disabled)
        if route.dialect is context.request.dialect
        for key in route.keys
    )


def targets_of(exchange: Exchange) -> list[Target]:
    """The targets of a ranking, in its order.

    Of a request that goes on from an answer those with the key that has it; the very target first.
    """
    targets = list_targets(exchange.ranking, exchange.runtime.targets)
    keeper = exchange.recalled.keeper
    if keeper is None:
        return targets
    dialect = exchange.request.dialect
    kept = [one for one in targets if one.key.id == keeper.key and one.dialect is dialect]
    return sorted(kept, key=lambda one: one.route.id != keeper.route)


def remember(memory: Memory, exchange: Exchange, target: Target, kept_as: str) -> None:
    """A target answered: write down what later requests need to know of it.

    Args:
        memory: of the worker.
        exchange: the request.
        target: what answered it.
        kept_as: the vendor's name of the answer, empty when it does not keep it.
    """
    memory.bind(exchange.recalled, target.route.id)
    if kept_as and exchange.request.dialect is target.dialect:
        memory.keep(exchange.client, kept_as, Keeper(target.route.id, target.key.id))
