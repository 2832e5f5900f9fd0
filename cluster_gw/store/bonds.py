"""Which route a session, a run or a combo answered with last (`lua/session/{recall,bind}`).

A bond is a hint: it is read before ranking and written after an answer, off its path. Whoever asks
later wins, so a slow answer to an old request does not undo a newer one. Without Redis nothing is
remembered.
"""

import asyncio
from typing import Final

import msgspec

from cluster_gw.errors import RecordUnreadableError, StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.lane import Reply
from cluster_gw.store.packing import Template, bulk, template_of
from cluster_gw.store.replies import ScriptMissingError
from cluster_gw.store.scripts import Script, Scripts
from cluster_gw.units import DAY_S, MS_PER_S, ComboId, RouteId

LAST_GOOD_TTL_MS: Final = DAY_S * MS_PER_S
ANSWER_TTL_MS: Final = DAY_S * MS_PER_S


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a bond is kept, and for how long after it was last used.

    Attributes:
        record: name of its key.
        ttl_ms: above 0.
    """

    record: str
    ttl_ms: int


class Bond(msgspec.Struct, frozen=True, kw_only=True):
    """What a request was told of a bond.

    Attributes:
        turn: of the request; None when Redis did not answer, so that nothing is written later; 0
            when nobody asked, since there could be nothing to find.
        route: what is bound; None for nothing.
    """

    turn: int | None = 0
    route: RouteId | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A question on its way, and the call that asks it again where the script is unknown."""

    template: Template
    packed: bytes
    future: asyncio.Future[list[Reply]]


NOT_ASKED: Final = Bond()
UNKNOWN: Final = Bond(turn=None)


class Bonds:
    """Remembers routes for all workers.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.

    Attributes:
        unread: bonds that were not told because Redis did not answer.
        unwritten: bonds of which it is unknown whether they were written, for the same reason.
    """

    def __init__(self, client: RedisClient, scripts: Scripts, keys: Keys) -> None:
        self.unread = 0
        self.unwritten = 0
        self._client = client
        self._recall: Script = scripts["session/recall"]
        self._bind: Script = scripts["session/bind"]
        self._keys = keys
        client.know(self._recall, self._bind)

    def pin(self, combo: ComboId, epoch: str, scope: str, key: str, ttl_ms: int) -> Place:
        """Give the place of a run's or a session's pin.

        Args:
            combo: whose routes it names.
            epoch: differs where what was remembered must not count any more.
            scope: `run` or `session`.
            key: hash of what belongs together; never a client's text.
            ttl_ms: how long it is kept after the last request.
        """
        return Place(record=self._keys.pin(combo, epoch, scope, key), ttl_ms=ttl_ms)

    def last_good(self, combo: ComboId, epoch: str) -> Place:
        """Give the place of a combo's last known good route."""
        return Place(record=self._keys.last_good(combo, epoch), ttl_ms=LAST_GOOD_TTL_MS)

    def answer(self, digest: str) -> Place:
        """Give the place of what is known of an answer that an upstream keeps.

        Args:
            digest: of the client and of the vendor's name of the answer.
        """
        return Place(record=self._keys.answer(digest), ttl_ms=ANSWER_TTL_MS)

    def ask(self, place: Place) -> Asked:
        """Ask what is bound; the question leaves with the other calls of this turn of the loop."""
        template = template_of(self._recall, [place.record], 1)
        packed = template.head + bulk(place.ttl_ms)
        future: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
        self._client.send(template, packed, future)
        return Asked(template=template, packed=packed, future=future)

    async def told(self, asked: Asked) -> Bond:
        """Wait for the answer; `UNKNOWN` when Redis does not answer in time."""
        try:
            try:
                reply = await asked.future
            except ScriptMissingError:
                reply = await self._client.run_packed(asked.template, asked.packed)
        except (StoreLostError, RecordUnreadableError):
            self.unread += 1
            return UNKNOWN
        route = bytes(reply[3]).decode()
        return Bond(turn=int(reply[2]), route=RouteId(route) if route else None)

    async def recall(self, place: Place) -> Bond:
        """Ask, and wait for the answer."""
        return await self.told(self.ask(place))

    async def look(self, place: Place) -> RouteId | None:
        """Tell what is bound; no turn is taken, and it is not kept any longer for that.

        Raises:
            StoreLostError: Redis is away.
        """
        route = await self._client.call("HGET", place.record, "route")
        return RouteId(route.decode()) if route else None

    def bind(
        self, place: Place, bond: Bond, route: RouteId | str, *, is_urgent: bool = False
    ) -> None:
        """Bind to the route that answered unless a later request has; sent without waiting.

        What is lost on the way is not repeated: the next answer says it.

        Args:
            place: as it was recalled from.
            bond: what the request was told.
            route: what answered.
            is_urgent: the client may ask for it as soon as it has the answer.
        """
        if bond.turn is not None:
            template = template_of(self._bind, [place.record], 3)
            packed = template.head + bulk(route, bond.turn, place.ttl_ms)
            self._client.send(template, packed, _Sent(self), lazy=not is_urgent)


class _Sent:
    """Takes the outcome of a binding, of which only a loss is of interest."""

    __slots__ = ("_bonds", "_is_done")

    def __init__(self, bonds: Bonds) -> None:
        self._bonds = bonds
        self._is_done = False

    def done(self) -> bool:
        """Whether there is an outcome."""
        return self._is_done

    def set_result(self, _reply: Reply, /) -> None:
        """It was written, or a later request had bound."""
        self._is_done = True

    def set_exception(self, _fault: BaseException, /) -> None:
        """Nobody knows."""
        self._is_done = True
        self._bonds.unwritten += 1
