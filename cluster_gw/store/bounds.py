"""What one request is held to, bound by bound: the words of targets and clients for the ledger."""

from typing import Final

from cluster_gw.core.limits.allowance import ClientGate
from cluster_gw.core.limits.caps import WEIGHT_SCALE
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.share import Span
from cluster_gw.core.limits.windows import Gate
from cluster_gw.store.lease import TargetLimits
from cluster_gw.store.ledger import Bound, Unit
from cluster_gw.store.plan import NO_LIMIT, Plan

FIVE: Final = (
    (Gate.RPM, Span.MINUTE, Unit.REQUESTS),
    (Gate.RPD, Span.PERIOD, Unit.REQUESTS),
    (Gate.TPM, Span.MINUTE, Unit.TOKENS),
    (Gate.TPD, Span.PERIOD, Unit.TOKENS),
    (Gate.CONCURRENCY, Span.SLOTS, Unit.SLOTS),
)
"""The limits of a window, in the order of `Plan.limits`."""


def bounds_of(plan: Plan, target: TargetLimits, demand: Demand) -> list[Bound]:
    """Every bound of a target, for a request of that size.

    Args:
        plan: of the target.
        target: what is asked for.
        demand: how much of it.
    """
    bounds = caps_bounds(plan, target, demand.total_tokens)
    for place, window in enumerate(plan.windows):
        limits = plan.limits[len(FIVE) * place : len(FIVE) * (place + 1)]
        for (gate, span, unit), limit in zip(FIVE, limits, strict=True):
            if limit != NO_LIMIT:
                amount = demand.total_tokens if unit is Unit.TOKENS else 1
                told = plan.gate(gate, place + 1)
                bounds.append(Bound(window, told, span, limit, amount, unit, place + 1))
    return bounds


def caps_bounds(plan: Plan, target: TargetLimits, tokens: int) -> list[Bound]:
    """What the provider caps over all models of the key; a minute's cap is a limit of its window.

    Args:
        plan: of the target.
        target: what is asked for.
        tokens: how many.
    """
    caps, weight, found = target.caps, target.token_weight, []
    if not caps.needs_record():
        return []
    record, position = plan.keys[-1], len(plan.windows) + 2
    if caps.rpd is not None:
        gate = Gate.PROVIDER_DAILY_CAP
        found.append(Bound(record, gate, Span.PERIOD, caps.rpd, 1, Unit.REQUESTS, position))
    if caps.tpd is not None:
        gate, limit = Gate.PROVIDER_DAILY_TOKEN_CAP, caps.tpd * WEIGHT_SCALE
        amount, unit = tokens * weight, Unit.TOKENS
        found.append(Bound(record, gate, Span.PERIOD, limit, amount, unit, position, weight))
    if caps.monthly_tokens is not None:
        gate, limit = Gate.MONTHLY_BUDGET_CAP, caps.monthly_tokens
        found.append(Bound(record, gate, Span.PERIOD, limit, tokens, Unit.TOKENS, position))
    return found


CLIENT_FIVE: Final = (
    (ClientGate.RPM, Span.MINUTE, Unit.REQUESTS),
    (ClientGate.TPM, Span.MINUTE, Unit.TOKENS),
    (ClientGate.CONCURRENCY, Span.SLOTS, Unit.SLOTS),
    (ClientGate.MONTHLY_TOKENS, Span.PERIOD, Unit.TOKENS),
    (ClientGate.MONTHLY_USD, Span.PERIOD, Unit.MONEY),
)
"""The limits of a client, in the order of the script's arguments."""
