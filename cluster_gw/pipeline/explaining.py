"""Why a request goes where it goes, told of an exchange: to operators, or to its own client."""

from collections.abc import Callable, Collection
from typing import Final

from cluster_gw.core.outcome.trace import Skipped
from cluster_gw.core.routing.catalog import Route
from cluster_gw.core.routing.explanation import (
    ExplainedKey,
    Explanation,
    KeysOf,
    SnapshotUsed,
    explain_ranking,
    explain_skips,
)
from cluster_gw.core.routing.key_choice import order_keys
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.trail import skip_refused
from cluster_gw.units import KeyId, RouteId

Named = Callable[[str, KeyId], str | int]
"""What a key is called, by its provider and its id."""


def by_id(_provider: str, key: KeyId) -> str:
    """Call a key by its id: never towards a client."""
    return key


def explain(
    exchange: Exchange,
    now_ms: int,
    named: Named = by_id,
    *,
    most: int | None = None,
    also: Collection[RouteId] = (),
    most_skips: int | None = None,
) -> Explanation:
    """Tell how a request was ranked and what was not called.

    Args:
        exchange: the request; nothing of what was asked or answered is told.
        now_ms: ms since the epoch.
        named: what keys are called.
        most: places to tell of; all by default.
        also: routes that are told of wherever they are.
        most_skips: what was skipped to tell of; all by default.
    """
    ranking, inputs = exchange.ranking, exchange.inputs
    keys, skipped = keys_of(exchange, named), skipped_of(exchange, most_skips)
    places = explain_ranking(ranking, inputs.signals, keys, most, also)
    return Explanation(
        combo=ranking.combo,
        family=ranking.family,
        strategy=ranking.strategy,
        config_version=exchange.runtime.catalog.version,
        epoch=exchange.context.resolved.epoch,
        snapshot=snapshot_of(exchange),
        ranking=places,
        skipped=explain_skips(skipped, now_ms),
        left_out=len(ranking.candidates) - len(places),
        skips_left_out=len(exchange.skipped) + len(exchange.refused) - len(skipped),
    )


def snapshot_of(exchange: Exchange) -> SnapshotUsed:
    """Which snapshot the request was ranked by, and how old that was then."""
    inputs = exchange.inputs
    return SnapshotUsed(
        version=exchange.ranking.snapshot, age_ms=inputs.signals.age_ms(inputs.now_s)
    )


def keys_of(exchange: Exchange, named: Named) -> KeysOf:
    """Tell the keys of a route in the order in which this request tries them.

    They have scores where their turn has come and something was learned of them.
    """
    drawn: Final = exchange.keys.drawn or {}

    def told(route: Route) -> list[ExplainedKey]:
        of_route = drawn.get(route.id)
        if of_route is not None:
            pairs = of_route.told()
        else:
            pairs = [(key.id, None) for key in order_keys(route, exchange.turns.look(route.id))]
        return [ExplainedKey(id=named(route.provider, key), score=score) for key, score in pairs]

    return told


def skipped_of(exchange: Exchange, most: int | None = None) -> list[Skipped]:
    """What could not serve, and what was asked for and not granted; the first `most` of it."""
    told, refused = exchange.skipped[:most], exchange.refused
    left = None if most is None else most - len(told)
    return [*told, *skip_refused(exchange, refused[:left])]
