"""A worker by itself: what it lets in while Redis is away, and how Redis learns of it.

Rooms 6 and 10, behind the same calls as with Redis: `store/admission.py` and `store/clients.py`
come here for a part that is away. Three modes. `share`: a share of what was left
(`core/limits/share.py`). `closed`: nothing. `open`: whole limits divided by the workers, whatever
had been used.

When Redis is back, others may still have to tell it what they did. Until then a worker that shares
asks it with caution (decision 0040): within its own share, or so that there is room for all shares.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from cluster_gw.core.limits.share import kept_free
from cluster_gw.errors import RecordUnreadableError, StoreLostError
from cluster_gw.store.absence import EVERYWHERE, HAND_OVER_S, Absence, Doubt
from cluster_gw.store.client import RedisClient
from cluster_gw.store.journal import Ended, Journal, Running
from cluster_gw.store.ledger import Bound, Facts, Ledger, Shortage
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.settlement import Told
from cluster_gw.units import MS_PER_S, LeaseId

BATCH: Final = 200
FORGETS_S: Final = 5.0  # what the next server may lack: see docs/redis.md on min-replicas-max-lag
RETRY_AFTER_MS: Final = 1000  # Redis may be back any moment


TakeTold = Callable[[float, Callable[[str], bool]], list[Told]]


class Mode(StrEnum):
    """What a worker does without Redis; `redis.when_lost`."""

    SHARE = "share"
    CLOSED = "closed"
    OPEN = "open"


class LostPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator chose.

    Attributes:
        mode: what is let in.
        spare_workers: how many workers there are, for mode `open` while that was never heard.
        hand_over_s: how long Redis is asked with caution when it is back: others hand over, too.
    """

    mode: Mode = Mode.SHARE
    spare_workers: int = 1
    hand_over_s: float = HAND_OVER_S


SHARED: Final = LostPolicy()


class AwayError(StoreLostError):
    """Redis is away and nothing may be let in without it: asking again at once is in vain."""


class HeldBackError(StoreLostError):
    """There may be room, but not before others have told Redis what they did without it.

    Attributes:
        wait_s: until then.
    """

    def __init__(self, wait_s: float) -> None:
        super().__init__("redis is not trusted yet")
        self.wait_s = wait_s


class Alone:
    """Joins absence, ledger and journal.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        whole: a key that stands for all of one server.
        policy: of the operator.
        workers: how many were alive lately, this one included; 0 while that was never heard.
        monotonic_s: clock.

    Attributes:
        doubts: what of Redis is not trusted now, by part; empty in good times.
        grants: requests let in here since the start.
        refusals: requests refused here.
        journal: what Redis does not know yet.
        cause: the last fault of a call.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        *,
        whole: str,
        policy: LostPolicy,
        workers: Callable[[], int],
        monotonic_s: Callable[[], float],
    ) -> None:
        self.mode = mode = policy.mode
        self.cause = ""
        self.grants = 0
        self.refusals = 0
        self.journal = Journal()
        self.ledger = Ledger(is_open=mode is Mode.OPEN)
        self.monotonic_s = monotonic_s
        self.absence = Absence(
            client,
            scripts,
            whole=whole,
            monotonic_s=monotonic_s,
            listener=self,
            # Where nobody spends by himself, nobody has anything to hand over; where everybody
            # spends whatever was used, caution would keep no limit.
            hand_over_s=policy.hand_over_s if mode is Mode.SHARE else 0.0,
        )
        self.doubts: dict[str, Doubt] = self.absence.doubts
        self._client = client
        self._workers = workers
        self._spare_workers = policy.spare_workers
        self._away: set[str] = set()
        self._again = Journal()
        self._take_told: TakeTold | None = None
        self._before_share: list[Callable[[], None]] = []
        self._before_loss: list[Callable[[], None]] = []
        self._when_begun: list[Callable[[], None]] = []
        self._when_trusted: list[Callable[[], None]] = []
        self._when_ended: list[Callable[[], None]] = []

    @property
    def is_away(self) -> bool:
        """Whether anything is."""
        return bool(self._away)

    def before_share(self, tell: Callable[[], None]) -> None:
        """Have `tell` called before a share is spent: it brings the ledger what it heard last."""
        self._before_share.append(tell)

    def before_loss(self, tell: Callable[[], None]) -> None:
        """Have `tell` called when something goes away, after those of `before_share`."""
        self._before_loss.append(tell)

    def tell_again(self, take_told: TakeTold) -> None:
        """Have what was told last told once more when a part is back, which may lack it."""
        self._take_told = take_told

    def when_begun(self, tell: Callable[[], None]) -> None:
        """Have `tell` called once the first part is away."""
        self._when_begun.append(tell)

    def when_trusted(self, tell: Callable[[], None]) -> None:
        """Have `tell` called when a part is used again: what is known of it is void."""
        self._when_trusted.append(tell)

    def when_ended(self, tell: Callable[[], None]) -> None:
        """Have `tell` called once no part is away any more."""
        self._when_ended.append(tell)

    def has_to_serve(self, key: str) -> bool:
        """Whether the part that has a key is away, so that this worker decides by itself."""
        return self.absence.is_away(self.absence.part_of(key))

    def is_doubted(self, key: str) -> bool:
        """Whether the part that has a key did not answer lately: what can do without it does."""
        doubt = self.doubts.get(self.absence.part_of(key)) if self.doubts else None
        return doubt is not None and not doubt.is_back

    def note(self, key: str, fault: StoreLostError) -> None:
        """A call for a key was lost."""
        if not isinstance(fault, AwayError | RecordUnreadableError):
            self.cause = str(fault)
            self.absence.note(self.absence.part_of(key), fault)

    def note_answer(self, key: str) -> None:
        """A call for a key was answered."""
        self.absence.note_answer(self.absence.part_of(key))

    def caution(self, key: str) -> Doubt | None:
        """See `Absence.caution`, of the part that has a key."""
        return self.absence.caution(self.absence.part_of(key))

    def pledge(self, doubt: Doubt, lease_id: LeaseId, bounds: Sequence[Bound]) -> bool:
        """Take a request's part of the own share, of which Redis will be asked as well.

        Args:
            doubt: of the part that is asked.
            lease_id: minted for this request.
            bounds: what it is held to.

        Returns:
            Whether there was room; without it as much must be kept free as all may have spent.
        """
        workers = self._workers()
        if not workers:
            return False
        if not doubt.is_told:
            doubt.is_told = True
            for tell in self._before_share:
                tell()
        return self.ledger.pledge(
            lease_id, bounds, workers=workers, lost_at_s=doubt.since_s, now_s=self.monotonic_s()
        )

    def narrowed(self, limit: int) -> int:
        """A limit without what all workers may have spent of it by themselves."""
        return limit - kept_free(limit, self._workers())

    def held_back_s(self, doubt: Doubt) -> float:
        """How long until others have told what they did."""
        return self.absence.caution_left_s(doubt)

    def admit(
        self,
        key: str,
        lease_id: LeaseId,
        bounds: Sequence[Bound],
        ttl_ms: int,
        register: Callable[[int], Awaitable[object]],
    ) -> Shortage | None:
        """Let a request in, or tell which bound has no room.

        Args:
            key: of the part that is away.
            lease_id: minted for this request; Redis learns of it under that id.
            bounds: what it is held to.
            ttl_ms: how long it may hold what it takes.
            register: reserves it in Redis, given the rest of its life.

        Raises:
            AwayError: nothing is let in without Redis, or nothing is known, or the journal is full.
        """
        workers = self.admitting_workers()
        part, now_s = self.absence.part_of(key), self.monotonic_s()
        shortage = self.ledger.take(
            lease_id,
            bounds,
            workers=workers,
            lost_at_s=self.absence.lost_at_s(part),
            now_s=now_s,
        )
        if shortage is not None:
            self.refusals += 1
            return shortage
        self.grants += 1
        self.journal.running[lease_id] = Running(
            part=part, ends_at_s=now_s + ttl_ms / MS_PER_S, register=register
        )
        return None

    def admitting_workers(self) -> int:
        """How many workers divide what was left.

        Raises:
            AwayError: see `admit`.
        """
        workers = self._workers()
        if not workers and self.mode is Mode.OPEN:
            workers = self._spare_workers
        if self.mode is Mode.CLOSED or not workers or self.journal.is_full:
            self.refusals += 1
            raise AwayError("redis is away")
        return workers

    def finish(self, lease_id: LeaseId, facts: Facts, settle: Callable[[float], None]) -> None:
        """Replace what a request took here by what it used, and have Redis learn of it.

        Args:
            lease_id: as admitted.
            facts: what it used.
            settle: queues its settlement, given its age in seconds.
        """
        running = self.journal.running.pop(lease_id, None)
        at_s = self.ledger.end(lease_id, facts)
        now_s = self.monotonic_s()
        if running is None or at_s is None:
            settle(0.0)
            return
        doubt = self.doubts.get(running.part)
        if doubt is None or doubt.is_back:
            settle(now_s - at_s)
        else:
            self.journal.add(Ended(running.part, at_s, settle))

    def room(self, key: str, bound: Bound) -> int:
        """How much of a bound this worker may still spend by itself."""
        part = self.absence.part_of(key)
        return self.ledger.room(
            bound,
            workers=max(1, self._workers()),
            lost_at_s=self.absence.lost_at_s(part),
            now_s=self.monotonic_s(),
        )

    def wait_ms(self, shortage: Shortage) -> int:
        """When to ask again: as soon as a minute lets more in, or Redis may be back."""
        wait_s = self.ledger.wait_s(shortage.bound, self.monotonic_s())
        return min(RETRY_AFTER_MS, round(wait_s * MS_PER_S)) or RETRY_AFTER_MS

    def gone(self, part: str) -> None:
        """See `absence.Listener`."""
        is_first = not self._away
        self._away.add(part)
        self._keep_told(part)
        begun = self._when_begun if is_first else ()
        for tell in (*self._before_share, *self._before_loss, *begun):
            tell()

    async def returned(self, part: str) -> None:
        """See `absence.Listener`: first what it may have forgotten, then what has ended and runs.

        Nothing is let in here from now on, and what ends is not added to the journal, so that both
        come to an end.

        Raises:
            StoreLostError: Redis was lost again; nothing of it is lost, and the rest stays.
        """
        for journal in (self._again, self.journal):
            while journal.settle(part, self.monotonic_s(), BATCH):
                await self.absence.probe(part)  # calls before it on the same connection are over
        running = self.journal.unregistered(part)
        for first in range(0, len(running), BATCH):
            some = running[first : first + BATCH]
            await asyncio.gather(*(self._register(one) for one in some))

    def _keep_told(self, part: str) -> None:
        doubt = self.doubts.get(part)
        if self._take_told is None or doubt is None:
            return
        for at_s, again in self._take_told(
            doubt.since_s - FORGETS_S,
            lambda key: part in {self.absence.part_of(key), EVERYWHERE},
        ):
            self._again.add(Ended(part, at_s, again))

    async def _register(self, running: Running) -> None:
        left_ms = round((running.ends_at_s - self.monotonic_s()) * MS_PER_S)
        if left_ms > 0:
            # What cannot be read is told elsewhere; all else must not wait for its repair.
            with contextlib.suppress(RecordUnreadableError):
                await running.register(left_ms)
        running.is_registered = True

    def trusted(self, part: str) -> None:
        """See `absence.Listener`."""
        has_ended = self._away == {part}
        self._away.discard(part)
        # A part of a cluster is a key, and its hash tag is in all keys of the same slot.
        is_one = self._client.is_sharded and part != EVERYWHERE
        tag = part[part.index("{") : part.index("}") + 1] if is_one else ""
        self.ledger.forget(tag, self.monotonic_s())
        for running in self.journal.running.values():
            running.is_registered = running.is_registered and running.part != part
        for tell in (*self._when_trusted, *(self._when_ended if has_ended else ())):
            tell()

    def flush(self) -> int:
        """Queue everything that has ended, at the end of the worker; how much runs still."""
        for part in self.journal.parts():
            self.journal.settle(part, self.monotonic_s(), len(self.journal))
        return len(self.journal)

    async def close(self) -> None:
        """Stop watching."""
        await self.absence.close()
