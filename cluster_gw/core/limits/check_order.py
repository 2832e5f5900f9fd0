"""Checks of keys that an operator orders out of turn: who still has to be asked.

An order stands in Redis until it is done. Whoever has the role begins with it, and so does the next
one where that worker ends too early; neither asks twice. The same rules stand in
`lua/health/{order,orders,ordered}.lua`. Times are the server's, ms since the epoch.
"""

from typing import Final

import msgspec

from cluster_gw.core.limits.key_status import KeyRecord

ALL_KEYS: Final = "*"


class CheckOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One order.

    Attributes:
        scope: `*` for all keys, the name of a provider, or of a key.
        begun_ms: when the first worker began with it; 0 while none has.
        fence: of the term that is at it.
    """

    scope: str
    ordered_ms: int
    begun_ms: int = 0
    fence: int = 0


def order_again(order: CheckOrder | None, scope: str, now_ms: int) -> CheckOrder:
    """What stands once it is ordered: one that nobody has begun with is not changed."""
    if order is not None and not order.begun_ms:
        return order
    return CheckOrder(scope=scope, ordered_ms=now_ms)


def begin(order: CheckOrder, fence: int, now_ms: int) -> CheckOrder:
    """What stands once a term has begun with it, which may not be the first."""
    begun_ms = order.begun_ms or now_ms
    return msgspec.structs.replace(order, begun_ms=begun_ms, fence=fence)


def is_ordered(record: KeyRecord, order: CheckOrder, now_ms: int) -> bool:
    """Whether a key in the scope of an order still has to be checked for it.

    Args:
        record: what is known of the key.
        order: with which somebody has begun.
        now_ms: the server's clock; what was checked after it was so by a clock that stepped back.
    """
    return not order.begun_ms <= record.checked_ms < now_ms
