"""What a settlement tells of usage, in the words of `lua/lib/usage.lua`."""

from typing import Final

from cluster_gw.core.limits.price import cost_nano_usd
from cluster_gw.store.lease import Settlement
from cluster_gw.store.plan import Plan

UNKNOWN: Final = "-"
NOBODY: Final = ("", "")


def told_of(plan: Plan, settlement: Settlement) -> tuple[str, str]:
    """Give whose use a settlement is, and what was used beside its tokens.

    Ids of clients are letters, digits, `_` and `-`, so they are encoded already.
    """
    consumed = settlement.consumed
    if consumed is None:
        return NOBODY
    whose, output = f"{consumed.client} {plan.named}", consumed.output_tokens
    price, cached, reasoning = plan.price, consumed.cached_tokens, consumed.reasoning_tokens
    if price is None:
        if not (cached or reasoning or consumed.family):
            return whose, str(output)
        cost: int | str = UNKNOWN
    else:
        input_tokens = settlement.tokens - output
        cost = cost_nano_usd(price, input_tokens=input_tokens, output_tokens=output)
    return whose, f"{output} {cached} {reasoning} {cost} {consumed.family or UNKNOWN}"
