"""Checks of keys that operators ordered, until they are done: the wrapper over `lua/health/order*`.

Any worker takes an order, the elected one does it. No request looks here.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote

import msgspec

from cluster_gw.core.limits.check_order import ALL_KEYS, CheckOrder
from cluster_gw.store.caller import ScriptCaller
from cluster_gw.store.lane import Reply

LAST: Final = b"=last"
ORDER_VALUES: Final = 3
DONE: Final = 1


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """Orders to work at, as of the server's clock."""

    orders: tuple[CheckOrder, ...]
    now_ms: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass that was ordered found: how many keys of each kind.

    Attributes:
        ended_ms: by the server's clock; 0 before it is booked.
        began_ms: likewise.
        unknown: nothing was learned of them.
    """

    ended_ms: int = 0
    began_ms: int
    valid: int
    rejected: int
    unknown: int


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """All orders that are not done, and what the last one came to."""

    orders: tuple[CheckOrder, ...]
    last: Outcome | None


class CheckOrders(ScriptCaller):
    """Keeps orders. Every method but the naming raises `StoreLostError` while Redis is away."""

    def scope_of(self, provider: str | None, key: str | None) -> str:
        """Name what is to be checked: all, a provider, or one of its keys."""
        if provider is None:
            return ALL_KEYS
        name = self._keys.slot(provider, key or "").strip("{}")
        return name if key else name.removesuffix(".")

    async def order(self, scope: str) -> tuple[int, bool]:
        """Order a check; since when the order stands (ms), and whether it stood already."""
        status, _, ordered_ms = await self._call("health/order", [self._place], scope)
        return int(ordered_ms), status != DONE

    async def begin(self, fence: int) -> Begun | None:
        """Give what is ordered to the worker with the role; None when a newer term has begun.

        Args:
            fence: of its term.
        """
        status, _, now_ms, *values = await self._call("health/orders", [self._place], fence)
        if status != DONE:
            return None
        rows = zip(*[iter(values)] * ORDER_VALUES, strict=True)
        orders = tuple(
            CheckOrder(scope=scope.decode(), ordered_ms=ordered_ms, begun_ms=begun_ms, fence=fence)
            for scope, ordered_ms, begun_ms in rows
        )
        return Begun(orders=orders, now_ms=now_ms)

    async def finish(self, fence: int, orders: Sequence[CheckOrder], found: Outcome) -> bool:
        """Book that orders are done; False when a newer term is at one of them."""
        words = [word for one in orders for word in (one.scope, one.ordered_ms)]
        counts = (found.began_ms, found.valid, found.rejected, found.unknown)
        reply = await self._call("health/ordered", [self._place], fence, *counts, *words)
        return bool(reply[0])

    async def look(self) -> Standing:
        """Read what stands; what cannot be read is left out."""
        flat = await self._client.call("HGETALL", self._place)
        fields = dict(zip(flat[::2], flat[1::2], strict=True))
        last = fields.pop(LAST, None)
        orders = (read_order(name, text) for name, text in sorted(fields.items()))
        return Standing(
            orders=tuple(one for one in orders if one is not None),
            last=None if last is None else read_outcome(last),
        )

    @property
    def _place(self) -> str:
        return self._keys.check_orders()


def read_order(name: Reply, text: Reply) -> CheckOrder | None:
    """Read the field of one order; None where it cannot be read."""
    try:
        ordered_ms, begun_ms, fence = map(int, text.split())
    except ValueError:
        return None
    scope = name.decode()
    return CheckOrder(scope=scope, ordered_ms=ordered_ms, begun_ms=begun_ms, fence=fence)


def read_outcome(text: Reply) -> Outcome | None:
    """Read what the last pass came to; None where it cannot be read."""
    try:
        ended_ms, began_ms, valid, rejected, unknown = map(int, text.split())
    except ValueError:
        return None
    return Outcome(
        ended_ms=ended_ms, began_ms=began_ms, valid=valid, rejected=rejected, unknown=unknown
    )


def shown_scope(scope: str) -> Mapping[str, str | None]:
    """Give provider and key of a scope as they are configured; None for all."""
    if scope == ALL_KEYS:
        return {"provider": None, "key": None}
    provider, _, key = scope.partition(".")
    return {"provider": unquote(provider), "key": unquote(key) or None}
