"""The axes a route is measured by, each in 0..1: speed and intelligence. Pure formulas.

Reliability, the third, is a distribution: `posterior.py`.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from cluster_gw.core.routing.statistics import Statistics

SPEED_PRIOR: Final = 0.6  # optimistic: what nobody has called is tried soon
FIRST_BYTE_SHARE: Final = 0.4
TYPICAL_TOKENS_PER_S: Final = 60.0
BEST_FIRST_BYTE_MS: Final = 300.0
WORST_FIRST_BYTE_MS: Final = 5000.0
TIERS: Final[Mapping[str, int]] = MappingProxyType(
    {"Frontier": 4, "Large": 3, "Medium": 2, "Small": 1, "other": 0}
)
TIER_STEP: Final = 1000.0
RANK_STEP: Final = 31.0  # the last of 1,000 ranks (980) still beats the next tier
USUAL_TIER: Final = "Medium"  # where no model of the catalogue has one
USUAL_RANK: Final = 50


def throughput_score(tokens_per_s: float) -> float:
    """Rate an output speed, at least 0: each further token a second counts less."""
    return 1.0 - math.exp(-tokens_per_s / TYPICAL_TOKENS_PER_S)


def first_byte_score(first_byte_ms: float) -> float:
    """Rate a time to first byte: 300 ms and less is 1, 5 s and more is 0, linear between."""
    span_ms = WORST_FIRST_BYTE_MS - BEST_FIRST_BYTE_MS
    return min(max((WORST_FIRST_BYTE_MS - first_byte_ms) / span_ms, 0.0), 1.0)


def speed_score(statistics: Statistics, first_byte_share: float = FIRST_BYTE_SHARE) -> float:
    """Rate the speed of a route or key; what is not known of it does not count.

    Args:
        statistics: of it.
        first_byte_share: how much the time to first byte counts, 0 to 1; the rest is output speed.
    """
    tokens_per_s, first_byte_ms = statistics.tokens_per_s, statistics.mean_first_byte_ms
    if tokens_per_s is None:
        return SPEED_PRIOR if first_byte_ms is None else first_byte_score(first_byte_ms)
    throughput = throughput_score(tokens_per_s)
    if first_byte_ms is None:
        return throughput
    of_first_byte = first_byte_share * first_byte_score(first_byte_ms)
    return (1.0 - first_byte_share) * throughput + of_first_byte


def intelligence_composite(tier: str, rank: int) -> float:
    """Put tier and rank into one number, to be scaled over the candidates: the tier comes first.

    Args:
        tier: a name out of `TIERS`.
        rank: place among all models, 1 is the best.
    """
    return TIERS[tier] * TIER_STEP - RANK_STEP * math.sqrt(max(1, rank))


def lower_median(values: Sequence[int]) -> int | None:
    """The value in the middle, the lower of two; None of nothing."""
    return sorted(values)[(len(values) - 1) // 2] if values else None
