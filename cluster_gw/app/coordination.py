"""This worker among the others: its beats, its roles, and what the dead leave behind."""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence

from cluster_gw import __version__
from cluster_gw.background.heartbeat import Heartbeat
from cluster_gw.background.reaper import LOOK_S, ROLE, Reaper
from cluster_gw.background.reporter import Reporter
from cluster_gw.background.runner import Runner
from cluster_gw.errors import StoreLostError
from cluster_gw.pipeline.shares import shared
from cluster_gw.server.serving import Current
from cluster_gw.store.client import RedisClient
from cluster_gw.store.fleet import REPORT_S, Fleet, WorkerState
from cluster_gw.store.keys import Keys
from cluster_gw.store.leadership import CAMPAIGN_S, Leadership
from cluster_gw.store.lease import TargetLimits
from cluster_gw.store.membership import BEAT_S, DeadWorker, Membership
from cluster_gw.store.reaping import Reaping
from cluster_gw.store.scripts import Scripts
from cluster_gw.telemetry import catalog, events
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import Registry
from cluster_gw.units import MS_PER_S


class Coordination:
    """Joins the parts by which workers know of each other.

    Args:
        redis: the worker's client.
        scripts: the loaded scripts.
        keys: builds key names.
        worker_id: names this worker, as in its leases.
        current: the configuration in force, for what can be admitted.
        log: where events go.
        registry: where numbers go.

    Attributes:
        membership: who lives, and the server's clock.
        fleet: what all workers say of themselves.
    """

    def __init__(
        self,
        redis: RedisClient,
        scripts: Scripts,
        keys: Keys,
        *,
        worker_id: str,
        current: Current,
        log: Log,
        registry: Registry,
    ) -> None:
        self._current, self._log, self._registry = current, log, registry
        self.membership = Membership(
            redis, scripts, keys, worker_id=worker_id, monotonic_s=time.monotonic
        )
        self.fleet = Fleet(redis, scripts, keys, worker_id=worker_id)
        self._started_at_ms = round(time.time() * MS_PER_S)
        self._worker_id = worker_id
        self._when_drained: list[Callable[[bool], None]] = []
        self._reporter = Reporter(self.fleet, state=self.state, on_drain=self._drain)
        self._leadership = Leadership(
            redis, scripts, keys, role=ROLE, worker_id=worker_id, monotonic_s=time.monotonic
        )
        self._heartbeat = Heartbeat(self.membership)
        self._reaper = Reaper(
            self.membership,
            self._leadership,
            Reaping(redis, scripts, keys, clients=lambda: current.serving.clients.limited),
            targets=self._targets,
            on_reaped=self._note_reaped,
            monotonic_s=time.monotonic,
        )
        # At once, before the first admission: the others judge a worker by its beats.
        redis.on_change(lambda is_up: self._heartbeat.beat_soon() if is_up else None)
        registry.on_read(lambda: registry.put(catalog.ALIVE_WORKERS, value=self.membership.alive))

    def when_beat_is_lost(self, tell: Callable[[StoreLostError], None]) -> None:
        """Have `tell` called with the fault of a beat that Redis did not answer."""
        self._heartbeat.when_lost(tell)

    def when_drained(self, tell: Callable[[bool], None]) -> None:
        """Have `tell` called when operators want this worker drained, or no longer."""
        self._when_drained.append(tell)

    def stay_unlisted(self) -> None:
        """Never say that this worker lives: it is none, but somebody who looks."""
        self._heartbeat.is_silent = True

    async def report(self) -> None:
        """Say what this worker is, and hear whether it is to be drained."""
        await self._reporter.report()

    def report_soon(self) -> None:
        """Report out of turn, and hear whether this worker is to be drained."""
        if not self._heartbeat.is_silent:
            self._reporter.look_soon()

    def state(self) -> WorkerState:
        """Tell what this worker is now; Redis is there for whoever reads it."""
        current = self._current
        return WorkerState(
            status=current.status,
            in_flight=current.in_flight,
            config_version=current.serving.runtime.catalog.version,
            file_version=current.serving.file_version,
            snapshot_version=current.view.snapshot.version,
            snapshot_age_ms=current.view.age_ms(time.monotonic()),
            started_at_ms=self._started_at_ms,
            version=__version__,
            host=socket.gethostname(),
            pid=os.getpid(),
            master_keys=current.serving.master_keys,
            unread_secrets=current.serving.unread_secrets,
        )

    def most_workers(self) -> int:
        """How many workers were alive within the last minute, at most; 0 before the first beat."""
        return self.membership.most

    def server_clock_ms(self) -> float | None:
        """Tell the server's clock now, ms since the epoch; None when it was not heard yet."""
        return self.membership.server_clock_ms()

    def start_jobs(self, runner: Runner) -> None:
        """Begin what has to be done every second."""
        runner.every(BEAT_S, "beat", self._heartbeat.beat)
        runner.every(REPORT_S, "report", self.report)
        runner.every(CAMPAIGN_S, "campaign", self._reaper.campaign)
        runner.every(LOOK_S, "reap", self._reaper.look)

    async def leave(self, *, is_clear: bool) -> None:
        """Give up every role, and the place among the others; the jobs have ended before.

        Args:
            is_clear: nothing of this worker is left to be settled. Otherwise it stays listed, is
                found dead, and its slots come back.
        """
        await self._heartbeat.stop()
        await self._reporter.stop()
        with contextlib.suppress(StoreLostError):
            await self._leadership.resign()
            if is_clear:
                await self.membership.leave()

    def _drain(self, is_drained: bool) -> None:  # noqa: FBT001 - as it was heard
        self._current.is_drained = is_drained
        kind = events.WORKER_DRAINED if is_drained else events.WORKER_REJOINED
        self._log.event(kind, worker=self._worker_id, in_flight=self._current.in_flight)
        for tell in self._when_drained:
            tell(is_drained)

    def _targets(self) -> Iterator[TargetLimits]:
        serving = self._current.serving
        for by_key in serving.runtime.targets.values():
            for target in by_key.values():
                yield target.limits
                for share in serving.clients.shares:
                    yield shared(target.limits, share)

    def _note_reaped(self, dead: Sequence[DeadWorker], leases: int) -> None:
        self._registry.add(catalog.LEASES_REAPED, value=leases)
        self._log.event(events.LEASES_REAPED, workers=[worker.id for worker in dead], count=leases)
