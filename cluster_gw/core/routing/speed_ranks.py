"""Places of routes by the speed that was measured, 1 (fastest) to 10, written down for all workers.

Statistics are forgotten after a week; a rank that was written down stays until another is measured.
It stands in where the operator gave none.
"""

import math
from collections.abc import Mapping
from typing import Final

from cluster_gw.core.routing.catalog import Route
from cluster_gw.core.routing.signals import RouteSignals
from cluster_gw.units import RouteId

MEASURED_FROM: Final = 20.0  # attempts, by weight, that say something of speed
STEPS: Final = 9  # between the fastest rank, 1, and the slowest

SpeedRanks = Mapping[RouteId, int]
"""Ranks by route, of those that have one."""


def measured_speed_rank(known: RouteSignals) -> int | None:
    """The place of a route by what was measured; None while that is little."""
    if known.statistics.speed_samples < MEASURED_FROM:
        return None
    return 1 + math.floor((1.0 - known.speed) * STEPS + 0.5)


def changed_ranks(
    written: SpeedRanks, routes: Mapping[RouteId, Route], known: Mapping[RouteId, RouteSignals]
) -> dict[RouteId, int | None]:
    """Tell what has to be written; nothing when that was done just now.

    A route of which little is known keeps its rank, and so does one to which the operator gave one
    of his own: it holds again when that is taken back.

    Args:
        written: as it stands.
        routes: of the catalogue; others are forgotten.
        known: how routes did lately.

    Returns:
        Ranks by route; None for those to forget.
    """
    changes: dict[RouteId, int | None] = {route: None for route in written if route not in routes}
    for name, signals in known.items():
        route = routes.get(name)
        if route is None or route.speed_rank is not None:
            continue
        rank = measured_speed_rank(signals)
        if rank is not None and rank != written.get(name):
            changes[name] = rank
    return changes


def speed_rank_of(route: Route, written: SpeedRanks) -> int | None:
    """The rank that holds of a route: the operator's, else what was written; None without both."""
    return written.get(route.id) if route.speed_rank is None else route.speed_rank
