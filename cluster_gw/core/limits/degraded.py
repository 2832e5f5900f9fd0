"""When so many providers are unusable that the pool counts as degraded: pure.

Degraded begins when less than half of the providers have had a usable key for a minute, and ends
when enough have had one for two: two clocks, so that it does not flap. The same rules stand in
`lua/health/weigh.lua`. Times are the server's, ms since the epoch.
"""

import msgspec

from cluster_gw.units import MS_PER_S


class DegradedPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When the pool is degraded.

    Attributes:
        healthy_ratio: share of providers with a usable key below which it may be.
        min_providers: with fewer it never is.
        entry_s: how long the share must have been below.
        exit_s: how long it must be back.
    """

    healthy_ratio: float = 0.5
    min_providers: int = 3
    entry_s: float = 60.0
    exit_s: float = 120.0


class PoolState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the pool.

    Attributes:
        is_degraded: whether it is.
        turning_ms: since when the share has spoken for the other state; 0 when it does not.
    """

    is_degraded: bool = False
    turning_ms: int = 0


def weigh_pool(
    state: PoolState, *, usable: int, total: int, policy: DegradedPolicy, now_ms: int
) -> PoolState:
    """Tell what the present share makes of the pool.

    Args:
        state: what was known.
        usable: providers with at least one key that may be used.
        total: providers with any key.
        policy: of the operator.
        now_ms: the server's clock.
    """
    if total < policy.min_providers:
        return PoolState()
    is_low = usable < policy.healthy_ratio * total
    if is_low == state.is_degraded:
        return PoolState(is_degraded=state.is_degraded)
    since_ms = min(state.turning_ms or now_ms, now_ms)
    grace_s = policy.exit_s if state.is_degraded else policy.entry_s
    if now_ms - since_ms >= grace_s * MS_PER_S:
        return PoolState(is_degraded=is_low)
    return PoolState(is_degraded=state.is_degraded, turning_ms=since_ms)
