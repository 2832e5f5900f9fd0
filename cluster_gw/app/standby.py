"""What this worker does without Redis: made ready while it is there, and loud when it is used."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Final

from cluster_gw.app.coordination import Coordination
from cluster_gw.background.runner import Runner
from cluster_gw.errors import StoreLostError
from cluster_gw.server.serving import Current
from cluster_gw.store.alone import Alone
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.looks import LOOK_S, Looks
from cluster_gw.store.plan import Plans
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.snapshots import Reading
from cluster_gw.telemetry import catalog, events
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import Registry
from cluster_gw.telemetry.seldom import Seldom
from cluster_gw.units import MS_PER_S

REMIND_S: Final = 60.0
SOON_S: Final = 0.1


class Standby:
    """Joins the parts that decide without Redis.

    Args:
        redis: the worker's client.
        scripts: the loaded scripts.
        keys: builds key names.
        alone: what decides.
        coordination: knows the server's clock.
        current: the configuration in force, for what can be admitted.
        worker_id: names this worker in the log.
    """

    def __init__(
        self,
        redis: RedisClient,
        scripts: Scripts,
        keys: Keys,
        *,
        alone: Alone,
        coordination: Coordination,
        current: Current,
        worker_id: str,
    ) -> None:
        self._redis, self._keys, self._alone = redis, keys, alone
        self._plans = Plans(keys, scripts)
        self._current, self._worker_id = current, worker_id
        self._looks = Looks(
            redis,
            alone,
            windows=self._windows,
            caps=self._caps,
            clients=self._clients,
            server_ms=coordination.server_clock_ms,
        )
        self._seen_change = 0
        self._looking: asyncio.Task[None] | None = None
        self._before = (0, 0, 0)
        self._losses = Seldom(alone.monotonic_s)
        alone.when_trusted(self._look_soon)
        coordination.when_beat_is_lost(lambda fault: alone.note(keys.workers(), fault))

    def report(self, log: Log, registry: Registry) -> None:
        """Tell log and metrics from now on."""
        self._log, self._registry = log, registry
        self._alone.when_begun(self._begin)
        self._alone.when_ended(self._end)
        registry.on_read(self._read)

    def start_jobs(self, runner: Runner) -> None:
        """Begin what has to be done every few seconds."""
        runner.every(LOOK_S, "window_look", self.look)
        runner.every(SOON_S, "window_look_soon", self._look_if_new)
        runner.every(REMIND_S, "alone_reminder", self.remind)

    def take_over(self, reading: Reading) -> None:
        """Keep what a new snapshot tells of windows."""
        age_s = max(0, reading.server_ms - reading.snapshot.at_ms) / MS_PER_S
        self._looks.take_over(reading.snapshot, self._alone.monotonic_s() - age_s)

    async def look(self) -> None:
        """Read what is used of every limit, unless Redis is away or a snapshot told of it."""
        self._seen_change = self._current.serving.change
        with contextlib.suppress(StoreLostError):
            await self._looks.look()

    async def stop(self) -> None:
        """End what a return of Redis began."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look_if_new(self) -> None:
        if self._current.serving.change != self._seen_change:
            await self.look()

    def _look_soon(self) -> None:
        """What was known is void: Redis may go away again at once."""
        self._looks.forget()
        self._looking = asyncio.get_running_loop().create_task(self.look())

    async def remind(self) -> None:
        """Say that Redis still is away, or was again and again."""
        count = self._losses.take_untold()
        if count:
            worker = self._worker_id
            self._log.event(events.REDIS_UNSTEADY, worker=worker, what="alone", count=count)
        if self._alone.is_away:
            self._log.event(
                events.ALONE_CONTINUED, **self._since(), journal=len(self._alone.journal)
            )

    def _begin(self) -> None:
        alone = self._alone
        self._before = (alone.grants, alone.refusals, alone.journal.replayed)
        if self._losses.may_tell_loss():
            self._log.event(
                events.ALONE_BEGUN,
                worker=self._worker_id,
                mode=alone.mode.value,
                cause=self._redis.fault or alone.cause,
            )

    def _end(self) -> None:
        if not self._losses.may_tell_return():
            return
        replayed = self._alone.journal.replayed - self._before[2]
        self._log.event(events.ALONE_ENDED, **self._since(), replayed=replayed)

    def _since(self) -> dict[str, str | int]:
        alone = self._alone
        return {
            "worker": self._worker_id,
            "mode": alone.mode.value,
            "grants": alone.grants - self._before[0],
            "refusals": alone.refusals - self._before[1],
        }

    def _read(self) -> None:
        put, alone = self._registry.put, self._alone
        put(catalog.ALONE, alone.mode.value, value=int(alone.is_away))
        put(catalog.ALONE_GRANTS, value=alone.grants)
        put(catalog.ALONE_REFUSALS, value=alone.refusals)
        put(catalog.JOURNAL, value=len(alone.journal))
        put(catalog.JOURNAL_REPLAYED, value=alone.journal.replayed)

    def _windows(self) -> Iterator[str]:
        runtime = self._current.serving.runtime
        for by_key in runtime.targets.values():
            for target in by_key.values():
                yield from self._plans.of(target.limits).windows
        for limits in runtime.shares.asked_for():
            yield from self._plans.of(limits).windows

    def _caps(self) -> Iterator[str]:
        for by_key in self._current.serving.runtime.targets.values():
            for target in by_key.values():
                if target.limits.caps.needs_record():
                    yield self._plans.of(target.limits).keys[-1]

    def _clients(self) -> Iterator[str]:
        for client in self._current.serving.clients.limited:
            yield self._keys.client(client)[1]
