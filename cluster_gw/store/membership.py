"""Which workers live: each says so every second, and silence tells the dead (`lua/meta/beat`).

A worker is dead for us when the server heard nothing from it for four seconds, and we watched that
silence ourselves while nothing disturbed our own beats. Without the second half, everybody would
look dead when Redis comes back after a while, or when its clock is set forward (decision 0018).
"""

from collections import deque
from collections.abc import Callable
from typing import Final

import msgspec

from cluster_gw.store.admission import server_clock
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys, encode_part
from cluster_gw.store.lane import Reply
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import MS_PER_S

BEAT_S: Final = 1.0
SILENT_AFTER_MS: Final = 1500
DEAD_AFTER_MS: Final = 4000
WATCHED_S: Final = 1.5  # longer than a beat: a worker that lives has been heard by then
UNSTEADY_S: Final = 2.5  # a longer pause between our own beats, and we cannot judge others
STEADY_S: Final = 3.0
REMEMBERED_BEATS: Final = 60


class DeadWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that fell silent.

    Attributes:
        id: as it stands in lease records: encoded.
        beat_ms: when the server last heard of it, ms since the epoch.
    """

    id: str
    beat_ms: int


class Membership:
    """This worker's place among the others.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        worker_id: names this worker, as in its leases.
        monotonic_s: clock for what this worker watched itself.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.

    Attributes:
        alive: workers that were alive at the last beat, this one included; 0 before the first.
        most: the same at most over the last minute of beats: when Redis comes back empty, or after
            a while, those who have not beaten again yet are there all the same.
        seen_ms: the server's clock at the last beat, ms since the epoch.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        *,
        worker_id: str,
        monotonic_s: Callable[[], float],
        server_now_ms: Callable[[], int] = server_clock,
    ) -> None:
        self.alive = 0
        self.most = 0
        self.seen_ms = 0
        self._recent: deque[int] = deque(maxlen=REMEMBERED_BEATS)
        self._client = client
        self._beat, self._leave = scripts["meta/beat"], scripts["meta/leave"]
        self._key = keys.workers()
        self._id = encode_part(worker_id)
        self._monotonic_s = monotonic_s
        self._server_now_ms = server_now_ms
        self._beaten_at_s: float | None = None
        self._asked_at_s = 0.0
        self._steady_since_s = 0.0
        self._watched_since_s: dict[DeadWorker, float] = {}

    def server_clock_ms(self) -> float | None:
        """Tell the server's clock now, ms since the epoch, never less than it shows.

        It may be more by the time a call takes to reach the server. None before the first beat.
        """
        if not self.seen_ms:
            return None
        return self.seen_ms + (self._monotonic_s() - self._asked_at_s) * MS_PER_S

    async def beat(self) -> None:
        """Say that this worker lives, and learn who is silent.

        Raises:
            StoreLostError: Redis is away.
        """
        asked_at_s = self._monotonic_s()
        reply = await self._client.run(
            self._beat,
            [self._key],
            [self._id, SILENT_AFTER_MS, DEAD_AFTER_MS, self._server_now_ms()],
        )
        now_s = self._monotonic_s()
        if self._beaten_at_s is None or now_s - self._beaten_at_s > UNSTEADY_S:
            self._steady_since_s = now_s
            self._watched_since_s = {}
        self._beaten_at_s = now_s
        self.alive, self.seen_ms = int(reply[2]), int(reply[3])
        self._asked_at_s = asked_at_s
        self._recent.append(self.alive)
        self.most = max(self._recent)
        known = self._watched_since_s
        self._watched_since_s = {one: known.get(one, now_s) for one in read_silent(reply)}

    def dead(self) -> tuple[DeadWorker, ...]:
        """Tell who is dead, as far as the last beat and the time since then can tell.

        Somebody may have been heard since: beat again before acting on it.
        """
        now_s = self._monotonic_s()
        if self._beaten_at_s is None or now_s - self._steady_since_s < STEADY_S:
            return ()
        server_ms = self.seen_ms + (now_s - self._beaten_at_s) * MS_PER_S
        return tuple(
            worker
            for worker, since_s in self._watched_since_s.items()
            if now_s - since_s >= WATCHED_S and server_ms - worker.beat_ms >= DEAD_AFTER_MS
        )

    async def forget(self, worker: DeadWorker) -> None:
        """Take a dead worker off the list, unless it was heard again.

        Raises:
            StoreLostError: Redis is away.
        """
        await self._client.run(self._leave, [self._key], [worker.id, worker.beat_ms])
        self._watched_since_s.pop(worker, None)

    async def leave(self) -> None:
        """Take this worker off the list: it ends and holds nothing any more.

        Raises:
            StoreLostError: Redis is away.
        """
        await self._client.run(self._leave, [self._key], [self._id, 0])


def read_silent(reply: list[Reply]) -> list[DeadWorker]:
    """Read the silent workers from the reply of a beat."""
    return [
        DeadWorker(id=name.decode(), beat_ms=int(beat))
        for name, beat in zip(reply[4::2], reply[5::2], strict=True)
    ]
