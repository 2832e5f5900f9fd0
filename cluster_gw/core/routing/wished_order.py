"""`provider.sort` of a request: within each tier the order is one quality, and no strategy's.

What is not known of a route, a price that nobody gave or a speed nobody measured, comes last: who
asks for the cheapest must not get what may cost anything.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from cluster_gw.canonical.request import SortBy
from cluster_gw.core.limits.allowance import MICRO_PER_USD
from cluster_gw.core.limits.price import cost_micro_usd
from cluster_gw.core.routing.catalog import Candidate, Route
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Move
from cluster_gw.core.routing.signals import UNKNOWN_ROUTE, Signals

UNKNOWN: Final = math.inf

Badness = Callable[[Route, RouteContext, Signals], float]
"""Gives what routes are sorted by, the smallest first; infinity where it is not known."""


def in_wished_order(
    candidates: tuple[Candidate, ...], context: RouteContext, signals: Signals, wish: SortBy
) -> tuple[tuple[Candidate, ...], tuple[Move, ...]]:
    """Put candidates in the order a client wished for; equal ones stay as they are.

    Args:
        candidates: best first, by tier and what their strategy says.
        context: the request.
        signals: how routes did lately.
        wish: of the client.

    Returns:
        The candidates in order, and why each of them is where it is.
    """
    badness, words = _BADNESS[wish], _WORDS[wish]
    found = {one.route.id: badness(one.route, context, signals) for one in candidates}
    ordered = sorted(candidates, key=lambda one: (one.match_tier, found[one.route.id]))
    return tuple(ordered), tuple(
        [
            Move(
                route=one.route.id,
                reason=f"sorted by {wish.value}, {told(found[one.route.id], words)}",
            )
            for one in ordered
        ]
    )


def told(badness: float, words: str) -> str:
    """A quality in words; a throughput is the worse the smaller it is."""
    return "unknown" if badness == UNKNOWN else words.format(abs(badness))


def _cost(route: Route, context: RouteContext, _signals: Signals) -> float:
    """What this very request costs by its estimate, USD."""
    demand = context.demand
    micro_usd = cost_micro_usd(
        route.price, input_tokens=demand.input_tokens, output_tokens=demand.output_tokens
    )
    return micro_usd / MICRO_PER_USD if route.is_priced else UNKNOWN


def _slowness(route: Route, _context: RouteContext, signals: Signals) -> float:
    """Tokens a second over the last day, negative."""
    speed = signals.routes.get(route.id, UNKNOWN_ROUTE).statistics.tokens_per_s
    return UNKNOWN if speed is None else -speed


def _latency(route: Route, context: RouteContext, signals: Signals) -> float:
    """Ms to the first byte over the last day; of vectors, which come whole, to the whole answer."""
    statistics = signals.routes.get(route.id, UNKNOWN_ROUTE).statistics
    is_whole = context.request.embedding is not None
    latency = statistics.mean_latency_ms if is_whole else statistics.mean_first_byte_ms
    return UNKNOWN if latency is None else latency


_BADNESS: Final[Mapping[SortBy, Badness]] = MappingProxyType(
    {SortBy.PRICE: _cost, SortBy.THROUGHPUT: _slowness, SortBy.LATENCY: _latency}
)
_WORDS: Final[Mapping[SortBy, str]] = MappingProxyType(
    {
        SortBy.PRICE: "{:.6f} USD",
        SortBy.THROUGHPUT: "{:.1f} tokens/s",
        SortBy.LATENCY: "{:.0f} ms",
    }
)
