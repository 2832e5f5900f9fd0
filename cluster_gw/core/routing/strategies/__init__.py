"""The table of strategies; a new member joins the laws in `tests/laws` by itself."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cluster_gw.core.routing.strategies.bandit import Bandit
from cluster_gw.core.routing.strategies.base import Strategy
from cluster_gw.core.routing.strategies.classic import Classic
from cluster_gw.core.routing.strategies.last_good import LastGood
from cluster_gw.core.routing.strategies.live_priority import LivePriority
from cluster_gw.core.routing.strategies.prefix_affinity import PrefixAffinity
from cluster_gw.core.routing.strategies.priority import Priority
from cluster_gw.core.routing.strategies.round_robin import RoundRobin
from cluster_gw.core.routing.strategies.two_choices import TwoChoices

_ALL: Final[tuple[Strategy, ...]] = (
    Bandit("balanced"),
    Bandit("smartest"),
    Bandit("fastest"),
    Bandit("reliable"),
    Bandit("custom"),
    LivePriority(),
    Priority(),
    RoundRobin(),
    PrefixAffinity(),
    LastGood(),
    TwoChoices(),
    Classic("smart"),
    Classic("quality"),
    Classic("fast"),
    Classic("cheap"),
    Classic("reliable"),
    Classic("weighted"),
)
STRATEGIES: Final[Mapping[tuple[str, str], Strategy]] = MappingProxyType(
    {(strategy.family, strategy.name): strategy for strategy in _ALL}
)
"""By family and name: two families may use one word for different things."""
