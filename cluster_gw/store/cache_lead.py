"""A lead of this worker: it lasts while the answer comes, and others may read what has come.

As long as nobody else follows, nothing of the answer goes to Redis, and the lead has a long lease
that is seldom renewed. The first follower of another worker cuts that to a second and wakes this
one.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec

from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.cache_codec import EntryUnreadableError
from cluster_gw.store.cache_feed import Ended, FeedCodec, Lost, Piece, Tail
from cluster_gw.store.cache_place import Place
from cluster_gw.units import MS_PER_S

LEASE_S: Final = 60.0
QUIET_RENEW_S: Final = 20.0
RENEW_S: Final = 0.2
LONGEST_S: Final = 1800.0
"""Nobody fetches longer; a lead that was forgotten is not renewed after that."""
FEED_KEEP_MS: Final = 10_000
AT_ONCE: Final = 16
DRAIN_S: Final = 0.5


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """What a lead needs of its worker.

    Attributes:
        is_heard: whether the worker is told when others follow.
        spawn: runs something in the background; a loss of Redis ends it silently.
    """

    is_heard: Callable[[], bool]
    spawn: Callable[[Coroutine[Any, Any, None]], None]


class Leading:
    """One lead.

    Args:
        place: where it is written.
        shared: of the worker.
        tail: what has come, read here and by followers of this worker.

    Attributes:
        tail: the same.
        is_followed: whether another worker reads along.
        is_stale: another has the lead; nothing is written any more.
        is_over: nothing more comes.
    """

    def __init__(self, place: Place, shared: Shared, tail: Tail) -> None:
        self.tail = tail
        self.is_followed = False
        self.is_stale = False
        self.is_over = False
        self._place, self._shared = place, shared
        self._loop = asyncio.get_running_loop()
        self._keys: list[str] = []
        self._codec: FeedCodec | None = None
        self._at = 0  # pieces that were packed
        self._packed_end = False
        self._acked = 0  # pieces of the feed in Redis
        self._unacked: list[bytes] = []
        self._is_sending = False
        self._drained: asyncio.Future[None] | None = None
        self._begun_s = self._renewed_s = self._loop.time()

    def add(self, piece: Piece) -> None:
        """More has come; who follows gets it within this turn of the loop."""
        self.tail.add(piece)
        self._push()

    def follow(self) -> None:
        """Another worker reads along from now on."""
        self.is_followed = self.tail.is_read_elsewhere = True
        self._push()

    def check(self) -> None:
        """Find out whether others follow: it may not have been heard."""
        if not (self.is_stale or self.is_over):
            self._renewed_s = self._loop.time()
            self._shared.spawn(self._renew())

    def beat(self) -> None:
        """Renew where it is time to; asked every `RENEW_S`."""
        now_s = self._loop.time()
        if now_s - self._begun_s > LONGEST_S:
            self.lose("forgotten")
        self._push()  # what was not written then
        is_quiet = not self.is_followed and self._shared.is_heard()
        if now_s - self._renewed_s >= (QUIET_RENEW_S if is_quiet else RENEW_S / 2):
            self.check()

    async def find_followers(self) -> None:
        """Ask whether others follow, where nobody has said so."""
        if not (self.is_followed or self.is_stale or self.is_over):
            with contextlib.suppress(StoreLostError, ScriptContractError):
                await self._renew()

    async def end(self) -> None:
        """The answer is whole: tell who follows, and wait a moment until that is written.

        It goes on being renewed until `stop`: nobody else shall lead while it is being stored.
        """
        self.tail.close(Ended())
        self._push()
        if self.is_followed and not self.is_stale and not self._is_drained():
            self._drained = self._loop.create_future()
            self._loop.call_later(DRAIN_S, _resolve, self._drained)
            await self._drained

    def stop(self) -> None:
        """Renew no longer."""
        self.is_over = True

    def lose(self, reason: str) -> None:
        """The answer does not come: tell who follows here."""
        self.tail.close(Lost(reason))
        self.stop()

    def _is_drained(self) -> bool:
        """Whether nothing is left to tell: all is written, or what comes is not the answer."""
        is_packed = self._at == len(self.tail.pieces) and self._packed_end
        return (is_packed and not self._unacked) or isinstance(self.tail.end, Lost)

    def _push(self) -> None:
        if not (self._is_sending or self.is_stale or self.is_over) and self.is_followed:
            self._is_sending = True
            self._shared.spawn(self._send())

    async def _send(self) -> None:
        try:
            while self._pack() and not self.is_stale and not self.is_over:
                status, *_ = await self._place.run(
                    "cache/feed",
                    self._names(),
                    *(self._place.owner, self.tail.token, self._acked, FEED_KEEP_MS),
                    *self._unacked,
                )
                if not status:
                    self.is_stale = True
                    break
                self._acked += len(self._unacked)
                self._unacked = []
                self._renewed_s = self._loop.time()
        finally:  # after a loss the next tick tries again
            self._is_sending = False
            if self._drained is not None and (self.is_stale or self._is_drained()):
                _resolve(self._drained)

    def _names(self) -> list[str]:
        """The keys of the lead and of its feed; most leads need neither."""
        if not self._keys:
            digest, token = self.tail.digest, self.tail.token
            keys = self._place.keys
            self._keys = [keys.cache_lead(digest), keys.cache_feed(digest, token)]
        return self._keys

    def _pack(self) -> bool:
        """Whether there is something to send; what was not confirmed comes first."""
        if self._unacked:
            return True
        while self._at < len(self.tail.pieces) and len(self._unacked) < AT_ONCE:
            piece, self._at = self.tail.taken_from(self._at)
            self._unacked.append(self._encoded(piece))
        is_all = self._at == len(self.tail.pieces) and len(self._unacked) < AT_ONCE
        if is_all and self.tail.end == Ended() and not self._packed_end:
            self._packed_end = True
            self._unacked.append(self._encoded(Ended()))
        return bool(self._unacked)

    def _encoded(self, piece: Piece | Ended) -> bytes:
        if self._codec is None:
            self._codec = FeedCodec(self._place.seal, self._names()[1])
        return self._codec.encode(self._acked + len(self._unacked), piece)

    async def _renew(self) -> None:
        status, _, *told = await self._place.run(
            "cache/renew",
            self._names(),
            *(self._place.owner, self.tail.token, round(LEASE_S * MS_PER_S), FEED_KEEP_MS),
        )
        if not status:
            self.is_stale = True
        elif told[0] and not self.is_followed:
            self.follow()


class Pump:
    """Reads along what another worker has in hand.

    Args:
        place: where it is read.
        tail: where what comes is put.
        most_quiet_s: how long Redis may not be heard of before the answer is given up.
    """

    def __init__(self, place: Place, tail: Tail, *, most_quiet_s: float = 1.0) -> None:
        self._place = place
        self._tail = tail
        self._most_quiet_s = most_quiet_s
        self._keys = [
            place.keys.cache_lead(tail.digest),
            place.keys.cache_feed(tail.digest, tail.token),
        ]
        self._codec = FeedCodec(place.seal, self._keys[1])
        self._at = 0
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """There is more."""
        self._woken.set()

    async def run(self, poll_s: float) -> None:
        """Read until the end; the tail is closed then.

        Args:
            poll_s: how long to wait for a wake-up before looking anyway.
        """
        loop = asyncio.get_running_loop()
        heard_s = loop.time()
        try:
            while self._tail.end is None and self._tail.readers:
                self._woken.clear()
                try:
                    has_more = await self._read()
                    heard_s = loop.time()
                except (StoreLostError, ScriptContractError):
                    has_more = False
                    if loop.time() - heard_s > self._most_quiet_s:
                        self._tail.close(Lost("redis"))
                except EntryUnreadableError:
                    has_more = False
                    self._tail.close(Lost("unreadable"))
                if not has_more and self._tail.end is None:
                    timer = loop.call_later(poll_s, self._woken.set)
                    await self._woken.wait()
                    timer.cancel()
        finally:
            self._tail.close(Lost("closed"))

    async def _read(self) -> bool:
        """Read on; whether there is more already."""
        _, code, length, *pieces = await self._place.run(
            "cache/follow", self._keys, self._tail.token, self._at, AT_ONCE
        )
        why = bytes(pieces.pop(0)).decode() if code == b"over" else ""
        for stored in pieces:
            piece = self._codec.decode(self._at, bytes(stored))
            self._at += 1
            if isinstance(piece, Ended):
                self._tail.close(piece)
                return False
            self._tail.add(piece)
        if self._at < length:
            return True
        if code == b"over":
            self._tail.close(Lost(why or "dead"))
        return False


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
