"""What earlier requests left for this one, read before ranking and written after an answer.

The round-robin cursor, the pin of a run or a session and the last known good route leave in one
write, so that all of them cost one round trip; most requests need none. Written is only what a
whole answer says.
"""

from hashlib import blake2b
from typing import NamedTuple

import msgspec

from cluster_gw.core.routing.constraints import constrain
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.stickiness import may_be_pinned, pin_key
from cluster_gw.core.routing.strategies.base import Strategy
from cluster_gw.store.bonds import NOT_ASKED, Asked, Bond, Bonds, Place
from cluster_gw.store.cursor import Cursors
from cluster_gw.units import MS_PER_S, ClientId, KeyId, RouteId


class Keeper(NamedTuple):
    """The target that keeps an answer."""

    route: RouteId
    key: KeyId


class Recalled(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was left.

    Attributes:
        cursor: the request's turn in its combo; 0 when not asked for.
        pinned: where its run or session was; None when nowhere, or not asked for.
        last_good: which route of the combo answered last, likewise.
        bonds: what its own answer is to be bound to.
        keeper: who keeps the answer that it goes on from; None when nobody does, or it does not.
    """

    cursor: int = 0
    pinned: RouteId | None = None
    last_good: RouteId | None = None
    bonds: tuple[tuple[Place, Bond], ...] = ()
    keeper: Keeper | None = None


NOTHING_LEFT = Recalled()
DIGEST_BYTES = 16


def answer_digest(client: ClientId, kept_as: str) -> str:
    """What stands for an answer in Redis: nobody but its client arrives at it."""
    material = f"{len(client)}:{client}:{kept_as}".encode("utf-8", "surrogatepass")
    return blake2b(material, digest_size=DIGEST_BYTES).hexdigest()


def has_choice(context: RouteContext) -> bool:
    """Whether more than one route can serve: a turn among one would only skip a place."""
    return len(constrain(context.resolved.candidates, context)[0]) > 1


class Memory:
    """Reads and writes what requests leave for each other.

    Args:
        cursors: of the worker.
        bonds: of the worker.
    """

    def __init__(self, cursors: Cursors, bonds: Bonds) -> None:
        self._cursors = cursors
        self._bonds = bonds

    async def recall(self, context: RouteContext, strategy: Strategy) -> Recalled:
        """Read what the request needs; without Redis nothing is pinned.

        Raises:
            StoreLostError: a cursor, or the keeper of an answer, is needed and nobody can tell it.
        """
        resolved, bonds = context.resolved, self._bonds
        epoch = resolved.epoch
        pin = last_good = None
        asked_pin = asked_good = None
        key = pin_key(context)
        if key is not None:
            policy = resolved.sticky
            ttl_ms = round(policy.ttl_s * MS_PER_S)
            pin = bonds.pin(resolved.combo, epoch, policy.scope, key, ttl_ms)
            asked_pin = bonds.ask(pin) if may_be_pinned(context) else None
        if strategy.needs_last_good:
            last_good = bonds.last_good(resolved.combo, epoch)
            asked_good = bonds.ask(last_good)
        turns = strategy.needs_cursor and has_choice(context)
        cursor = await self._cursors.next(resolved.combo, epoch) if turns else 0
        pinned, good = await self._told(asked_pin), await self._told(asked_good)
        found = ((pin, pinned), (last_good, good))
        return Recalled(
            cursor=cursor,
            pinned=pinned.route,
            last_good=good.route,
            bonds=tuple([(place, bond) for place, bond in found if place is not None]),
            keeper=await self._keeper(context),
        )

    async def look(self, context: RouteContext, strategy: Strategy) -> Recalled:
        """Tell what `recall` would find now, without taking a turn or leaving any other trace.

        Raises:
            StoreLostError: Redis is away.
        """
        resolved, bonds = context.resolved, self._bonds
        key, epoch, policy = pin_key(context), resolved.epoch, resolved.sticky
        pinned = last_good = None
        if key is not None and may_be_pinned(context):
            pinned = await bonds.look(bonds.pin(resolved.combo, epoch, policy.scope, key, 1))
        if strategy.needs_last_good:
            last_good = await bonds.look(bonds.last_good(resolved.combo, epoch))
        turns = strategy.needs_cursor and has_choice(context)
        cursor = await self._cursors.look(resolved.combo, epoch) if turns else 0
        return Recalled(
            cursor=cursor,
            pinned=pinned,
            last_good=last_good,
            keeper=await self._keeper(context),
        )

    def keep(self, client: ClientId, kept_as: str, keeper: Keeper) -> None:
        """A target keeps an answer that this client may go on from."""
        place = self._bonds.answer(answer_digest(client, kept_as))
        self._bonds.bind(place, NOT_ASKED, " ".join(keeper), is_urgent=True)

    def bind(self, recalled: Recalled, route: RouteId) -> None:
        """A request was answered by a route: write it down for the next ones."""
        for place, bond in recalled.bonds:
            self._bonds.bind(place, bond, route)

    async def _told(self, asked: Asked | None) -> Bond:
        return NOT_ASKED if asked is None else await self._bonds.told(asked)

    async def _keeper(self, context: RouteContext) -> Keeper | None:
        """Tell who keeps the answer that a request goes on from, if its client ever got it.

        Raises:
            StoreLostError: Redis is away.
        """
        kept_as = context.request.continues
        if not kept_as:
            return None
        told = await self._bonds.look(self._bonds.answer(answer_digest(context.client, kept_as)))
        route, _, key = (told or "").rpartition(" ")
        return Keeper(RouteId(route), KeyId(key)) if route else None
