"""Answers that may be given again, and one call upstream for all who ask the same at once.

Nothing here holds a request up: a lookup that Redis does not answer in time is a request without
the cache, and lets the next ones pass by for a while. What is written is written in the background.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from cluster_gw.errors import RecordUnreadableError, ScriptContractError, StoreLostError
from cluster_gw.store.bus import Bus
from cluster_gw.store.cache_codec import (
    Entry,
    EntryCodec,
    EntryUnreadableError,
    EntryUnwritableError,
    takes_long,
)
from cluster_gw.store.cache_feed import Feed, Lost, Piece, Tail
from cluster_gw.store.cache_index import Bounds, CacheIndex
from cluster_gw.store.cache_lead import LEASE_S, RENEW_S, Leading, Pump, Shared
from cluster_gw.store.cache_look import (
    Following,
    Found,
    Lead,
    Looking,
    Unavailable,
    reason_of,
)
from cluster_gw.store.cache_place import Place
from cluster_gw.store.cache_use import Uses
from cluster_gw.store.cache_write import LOST, STALE, STORED, UNWRITABLE, Writer
from cluster_gw.store.lane import Reply
from cluster_gw.store.packing import bulk, template_of
from cluster_gw.units import MS_PER_S

LOOK_S: Final = 0.05
REST_MIN_S: Final = 0.1
REST_MAX_S: Final = 1.0  # while it goes on, each rest is twice as long
POLL_S: Final = 0.1
ROLLS: Final = 1000
LOOK_ARGS: Final = 5
CALLED_MOST: Final = 1000
SCRIPTS: Final = tuple(
    f"cache/{name}"
    for name in (
        *("look", "renew", "feed", "follow", "publish", "give_up"),
        *("admit", "confirm", "touch"),
    )
)
T = TypeVar("T")


class ResponseCache:
    """The cache of one worker.

    Args:
        place: where it lies.
        bounds: how much may be stored, as configured now.
        monotonic_s: clock.
        draw: gives a number from 0 to below 1.
        look_s: how long a lookup is waited for.

    Attributes:
        index: of everything that is stored.
        counts: lookups by what came of them, and ends of leads, by one word.
    """

    def __init__(
        self,
        place: Place,
        bounds: Callable[[], Bounds],
        *,
        monotonic_s: Callable[[], float],
        draw: Callable[[], float] | None = None,
        look_s: float = LOOK_S,
    ) -> None:
        self.index = CacheIndex(place.client, place.scripts, place.keys, server_now_ms=place.now_ms)
        self.counts: dict[str, int] = {}
        self._place, self._client, self._keys = place, place.client, place.keys
        self._codec = EntryCodec(place.seal)
        self._bounds, self._monotonic_s = bounds, monotonic_s
        self._draw = random.SystemRandom().random if draw is None else draw
        self._writer = Writer(place, self.index, self._codec, bounds, self._draw)
        self._look_s = look_s
        self._rest_s = 0.0
        self._rests_until_s = -REST_MAX_S
        self._tasks: set[asyncio.Task[None]] = set()
        self._leads: dict[str, Leading] = {}
        self._tails: dict[str, Tail] = {}
        self._pumps: dict[str, Pump] = {}
        self._called: dict[str, bool] = {}
        self._beating: asyncio.TimerHandle | None = None
        self._bus: Bus | None = None
        self._uses = Uses(self.index, place.keys, monotonic_s, self._spawn)
        self._shared = Shared(
            is_heard=lambda: self._bus is not None and self._bus.is_up, spawn=self._spawn
        )

    def start(self) -> None:
        """Load the scripts and hear who follows; else the first lookup does. Safe to repeat."""
        if self._bus is None:
            self._client.know(*(self._place.scripts[name] for name in SCRIPTS))
            self._bus = self._client.listen(
                self._keys.cache_ear(self._place.worker_id),
                on_message=self._hear,
                on_gap=self._look_again,
            )
            self._bus.start()

    async def close(self) -> None:
        """Give up what is in hand, and write down what was used."""
        for leading in list(self._leads.values()):
            if leading.tail.end is None:  # else it is being stored
                self.give_up(Lead(leading.tail.digest, leading.tail.token), "closed")
        self._uses.flush()
        while self._tasks:
            for tail in self._tails.values():
                tail.close(Lost("closed"))
            for pump in self._pumps.values():
                pump.wake()
            await asyncio.wait(self._tasks)
        if self._bus is not None:
            await self._bus.close()

    async def look(self, digest: str) -> Found | Lead | Following | Unavailable:
        """Find the answer to a request, or who fetches it; bounded by 50 ms and one round trip.

        Args:
            digest: hexadecimal digits.
        """
        self.start()
        tail = self._tails.get(digest)
        if tail is not None and not isinstance(tail.end, Lost):
            return self._counted("coalesced", Following(digest, tail.token))
        if self._monotonic_s() < self._rests_until_s:
            return self._off("resting")
        try:
            status, code, *told = await self._ask(digest)
        except RecordUnreadableError as fault:
            self._client.unreadable.tell(*fault.keys)
            self._spawn(self._discard(*fault.keys))
            return self._off("unreadable")
        except (StoreLostError, ScriptContractError) as fault:
            self._rest_s = min(REST_MAX_S, max(REST_MIN_S, 2 * self._rest_s))
            self._rests_until_s = self._monotonic_s() + self._rest_s
            return self._off(reason_of(fault))
        self._rest_s = 0.0
        if not status:
            return self._off("alien")
        return await self._told(digest, code, told)

    def feed(self, lead: Lead, piece: Piece) -> None:
        """Hand on what has come; first a `Head`. It leaves within the turn, if anybody follows."""
        leading = self._leading(lead)
        if leading is not None:
            leading.add(piece)
            if isinstance(leading.tail.end, Lost):
                self.give_up(lead, leading.tail.end.reason)

    async def publish(self, lead: Lead, entry: Entry, *, ttl_s: float) -> bool:
        """Store the answer, end what followers read, and free the lead.

        Args:
            lead: of this caller.
            entry: the whole answer.
            ttl_s: how long others may get it, more or less a tenth; above 0, at most 30 days.

        Returns:
            Whether it was stored. It is not where another leads meanwhile, where it is larger than
            an entry may be, where entries were flushed since it was begun, or Redis is lost.
        """
        leading = self._leading(lead)
        if leading is None:
            return False
        try:
            await leading.end()
            result = STALE if leading.is_stale else await self._writer.store(lead, entry, ttl_s)
        except (StoreLostError, ScriptContractError):
            result = LOST
        except EntryUnwritableError:
            result = UNWRITABLE
        finally:  # until now it could be read here
            self._forget(leading)
        if result not in {STORED, STALE}:
            self._free(lead, "not_kept")
        self._count(result)
        return result == STORED

    async def finish(self, lead: Lead) -> None:
        """The answer is whole, but is not kept: who follows gets it, nobody does later."""
        leading = self._leading(lead)
        if leading is not None:
            try:
                await leading.find_followers()  # they will find no entry
                await leading.end()
            finally:
                self._forget(leading)
            self._free(lead, "not_kept")
            self._count("not_kept")

    def give_up(self, lead: Lead, why: str = "gave_up") -> None:
        """Free the lead; one of those who follow takes it.

        Args:
            lead: of this caller.
            why: one word, for numbers.
        """
        leading = self._leading(lead)
        if leading is not None:
            self._free(lead, why)  # before anybody here asks who leads now
            self._forget(leading)
            leading.lose(why)
            self._count("gave_up")

    def is_awaited(self, lead: Lead) -> bool:
        """Whether others wait for the answer of a lead.

        Args:
            lead: of this caller.
        """
        leading = self._leading(lead)
        return leading is not None and leading.tail.is_awaited

    def goes_on(self, lead: Lead, when_alone: Callable[[], None]) -> bool:
        """Whether others wait for the answer of a lead whose own client has left.

        Args:
            lead: of this caller.
            when_alone: called once none of them does any more; where another worker reads along
                not at all: that reads to the end.
        """
        leading = self._leading(lead)
        if leading is None or not leading.tail.is_awaited:
            return False
        leading.tail.when_alone = when_alone
        return True

    def follow(self, following: Following) -> Feed:
        """Read along what somebody else fetches, from the beginning."""
        leading, tail = self._leads.get(following.digest), self._tails.get(following.digest)
        if leading is not None and leading.tail.token == following.token:
            return Feed(leading.tail)
        if tail is not None and tail.token == following.token:
            return Feed(tail)
        tail = self._tail(following.digest, following.token)
        feed, pump = Feed(tail), Pump(self._place, tail)
        self._tails[tail.digest], self._pumps[tail.digest] = tail, pump
        self._spawn(self._read_along(tail, pump))
        return feed

    def touch(self, digest: str, prompt_tokens: int, completion_tokens: int) -> None:
        """An entry was used: book it a little later.

        Args:
            digest: of the request.
            prompt_tokens: that were not sent because of it.
            completion_tokens: the same of the answer.
        """
        self._uses.hit(digest, prompt_tokens, completion_tokens)

    async def _told(
        self, digest: str, code: bytes, told: Sequence[Reply]
    ) -> Found | Lead | Following | Unavailable:
        if code == b"found":
            return await self._found(digest, *told)
        if code == b"lead":
            self._uses.miss()
            return self._counted("miss", self._lead(digest, told[0]))
        return self._counted("coalesced", Following(digest, told[0]))

    def _off(self, reason: str) -> Unavailable:
        return self._counted(reason, Unavailable(reason))

    async def _found(
        self, digest: str, stored: bytes, age_ms: int, token: int
    ) -> Found | Unavailable:
        name = self._keys.cached(digest)
        refresh = self._lead(digest, token, is_refresh=True) if token else None
        body = stored[stored.index(b"\n") + 1 :]
        try:
            if takes_long(body):
                entry = await asyncio.to_thread(self._codec.apart().decode, name, body)
            else:
                entry = self._codec.decode(name, body)
        except EntryUnreadableError:
            if refresh is not None:
                self.give_up(refresh, "unreadable")
            self._client.unreadable.tell(name)
            self._spawn(self._discard(name))
            return self._counted("unreadable", Unavailable("unreadable"))
        return self._counted("hit", Found(entry, age_ms, refresh))

    async def _discard(self, *names: str) -> None:
        """Nobody can read these, and they may be lost: the next request fetches another answer."""
        await asyncio.gather(*(self._client.submit("DEL", name) for name in names))

    def _free(self, lead: Lead, why: str) -> None:
        self._spawn(self._place.give_up(lead.digest, lead.token, why))

    async def _ask(self, digest: str) -> list[Reply]:
        keys = [self._keys.cache_lead(digest), self._keys.cached(digest)]
        template = template_of(self._place.scripts["cache/look"], keys, LOOK_ARGS)
        own = bulk(
            *(self._codec.format, self._place.owner, round(LEASE_S * MS_PER_S)),
            *(int(self._draw() * ROLLS), self._place.now_ms()),
        )
        looking = Looking(lambda token: self._free(Lead(digest, token), "late"))
        return await looking.reply(self._client, template, template.head + own, self._look_s)

    def _lead(self, digest: str, token: int, *, is_refresh: bool = False) -> Lead:
        tail = self._tail(digest, token)
        before = self._leads.get(digest)
        if before is not None:  # another one had the lead meanwhile
            before.lose("late")
        leading = self._leads[digest] = Leading(self._place, self._shared, tail)
        if not is_refresh:  # who finds an entry does not wait for the next one
            self._tails[digest] = tail
        if self._called.pop(digest, False):
            leading.follow()
        if self._beating is None:
            self._beating = asyncio.get_running_loop().call_later(RENEW_S, self._beat)
        return Lead(digest, token)

    def _tail(self, digest: str, token: int) -> Tail:
        bounds = self._bounds()
        return Tail(digest, token, bounds.max_entry_bytes, bounds.shared_bytes)

    def _beat(self) -> None:
        for leading in self._leads.values():
            leading.beat()
        loop = asyncio.get_running_loop()
        self._beating = loop.call_later(RENEW_S, self._beat) if self._leads else None

    def _leading(self, lead: Lead) -> Leading | None:
        leading = self._leads.get(lead.digest)
        return leading if leading is not None and leading.tail.token == lead.token else None

    def _forget(self, leading: Leading) -> None:
        leading.stop()
        digest = leading.tail.digest
        if self._leads.get(digest) is leading:
            del self._leads[digest]
        if self._tails.get(digest) is leading.tail:
            del self._tails[digest]

    async def _read_along(self, tail: Tail, pump: Pump) -> None:
        try:
            await pump.run(POLL_S)
        finally:
            if self._tails.get(tail.digest) is tail:
                del self._tails[tail.digest]
            if self._pumps.get(tail.digest) is pump:
                del self._pumps[tail.digest]

    def _hear(self, text: bytes) -> None:
        kind, _, digest = text.decode(errors="replace").partition(" ")
        leading, pump = self._leads.get(digest), self._pumps.get(digest)
        if kind == "follow" and leading is not None:
            leading.follow()
        elif kind == "follow":  # perhaps of a lead that this worker is just being given
            self._called[digest] = True
            if len(self._called) > CALLED_MOST:
                del self._called[next(iter(self._called))]
        if kind == "feed" and pump is not None:
            pump.wake()

    def _look_again(self) -> None:
        """Something may have been missed."""
        for pump in self._pumps.values():
            pump.wake()
        for leading in self._leads.values():
            leading.check()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _counted(self, word: str, value: T) -> T:
        self._count(word)
        return value

    def _count(self, word: str) -> None:
        self.counts[word] = self.counts.get(word, 0) + 1


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    """What is done in the background shows at the next call whether Redis is there."""
    try:
        await work
    except (StoreLostError, ScriptContractError):
        return
