"""The table of strategies; a new member joins the laws in `tests/laws` by itself."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cluster_gw.core.routing.strategies.base import Strategy
from cluster_gw.core.routing.strategies.priority import Priority
from cluster_gw.core.routing.strategies.round_robin import RoundRobin

STRATEGIES: Final[Mapping[str, Strategy]] = MappingProxyType(
    {strategy.name: strategy for strategy in (Priority(), RoundRobin())}
)
