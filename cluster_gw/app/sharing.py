"""What all workers know in common: what one tells the others at once, and the snapshot."""

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from typing import Final

from cluster_gw.app.base import Base
from cluster_gw.app.coordination import Coordination
from cluster_gw.app.fleet_metrics import FleetMetrics
from cluster_gw.app.health import Health
from cluster_gw.background.config_watch import LOOK_S as CONFIG_LOOK_S
from cluster_gw.background.config_watch import ConfigWatch
from cluster_gw.background.runner import Runner
from cluster_gw.background.snapshot_builder import LOOK_S, SnapshotBuilder
from cluster_gw.background.snapshot_follower import LOOK_S as FOLLOW_S
from cluster_gw.background.snapshot_follower import SnapshotFollower
from cluster_gw.background.speed_ranker import LOOK_S as RANK_S
from cluster_gw.background.speed_ranker import SpeedRanker
from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.routing.snapshot import NO_SNAPSHOT
from cluster_gw.core.routing.speed_ranks import changed_ranks
from cluster_gw.errors import StoreLostError
from cluster_gw.pipeline.condition import list_hosts, list_models
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.view import build_view
from cluster_gw.server.serving import Current
from cluster_gw.store.bars import Bars
from cluster_gw.store.events import (
    WELL,
    ConfigEvent,
    DrainEvent,
    Event,
    HealthEvent,
    ModelEvent,
    ProviderEvent,
    SnapshotEvent,
    StatusEvent,
    read_event,
)
from cluster_gw.store.hearing import Hearing
from cluster_gw.store.leadership import CAMPAIGN_S, Leadership
from cluster_gw.store.plan import Plans
from cluster_gw.store.snapshots import ROLE, Reading, Snapshots
from cluster_gw.store.speed_ranks import SpeedRankRecord
from cluster_gw.store.survey import Findings, Survey
from cluster_gw.telemetry import catalog, events
from cluster_gw.units import MS_PER_S, RouteId

UNKNOWN: Final = "unknown"
DEAF_S: Final = 5.0


class Sharing:
    """Joins the parts by which workers know the same.

    Args:
        base: of the worker.
        current: the configuration in force; gets the view of each snapshot.
        bars: what is known to be barred.
        health: what is known beyond single targets.
        coordination: this worker among the others.
        config_watch: knows what was changed of the configuration.
    """

    def __init__(
        self,
        base: Base,
        current: Current,
        *,
        bars: Bars,
        health: Health,
        coordination: Coordination,
        config_watch: ConfigWatch,
    ) -> None:
        self._config_watch = config_watch
        self._base, self._current = base, current
        self._bars, self._health, self._coordination = bars, health, coordination
        redis, scripts, keys = base.redis, base.scripts, base.keys
        self._bus = redis.listen(keys.events(), on_message=self._hear, on_gap=self._catch_up)
        self._survey, self._plans = Survey(redis, scripts, keys), Plans(keys, scripts)
        snapshots = Snapshots(redis, scripts, keys, worker_id=base.worker_id)
        self._leadership = Leadership(
            redis, scripts, keys, role=ROLE, worker_id=base.worker_id, monotonic_s=time.monotonic
        )
        self._builder = SnapshotBuilder(
            coordination.membership,
            self._leadership,
            snapshots,
            survey=self._survey_all,
            worker_id=base.worker_id,
            monotonic_s=time.monotonic,
        )
        self._follower = SnapshotFollower(
            snapshots, on_read=self._take_over, on_unreadable=self._note_unreadable
        )
        self._speeds = SpeedRankRecord(redis, scripts, keys, worker_id=base.worker_id)
        self._ranker = SpeedRanker(
            self._leadership,
            self._speeds,
            changed=self._changed_ranks,
            server_clock_ms=coordination.server_clock_ms,
        )
        self._hearing = Hearing()
        self._deaf_since_s: float | None = None
        self._reading: tuple[Reading, float] | None = None
        self._fitted_to = current.serving
        self._when_read: list[Callable[[Reading], None]] = []
        redis.on_change(lambda is_up: self._look_soon(is_up=is_up))
        base.registry.on_read(self._read)
        FleetMetrics(
            base, current, board=health.board, plans=self._plans, coordination=coordination
        )

    def when_read(self, tell: Callable[[Reading], None]) -> None:
        """Have `tell` called with each new snapshot."""
        self._when_read.append(tell)

    def start(self) -> None:
        """Begin to listen, and rank by what the configuration says until there is a snapshot."""
        clock = self._base.clock
        nothing = Reading(snapshot=NO_SNAPSHOT, server_ms=clock.wall_ms())
        self._reading = (nothing, clock.monotonic_s())
        self._fit(*self._reading)
        self._bus.start()

    def start_jobs(self, runner: Runner) -> None:
        """Begin what has to be done every second."""
        runner.every(CAMPAIGN_S, "snapshot_campaign", self._builder.campaign)
        runner.every(LOOK_S, "snapshot_build", self._builder.look)
        runner.every(FOLLOW_S, "snapshot_follow", self._follow)
        runner.every(RANK_S, "speed_ranks", self._ranker.look)
        runner.every(CONFIG_LOOK_S, "config_look", self._config_watch.look)

    async def stop(self) -> None:
        """Hear nothing any more, and give the role up; the jobs have ended before."""
        await self._bus.close()
        await self._follower.stop()
        await self._config_watch.stop()
        with contextlib.suppress(StoreLostError):
            await self._leadership.resign()

    def _hear(self, text: bytes) -> None:
        event = read_event(text)
        match event:
            case HealthEvent():
                self._bars.hear(event, self._base.clock.monotonic_s())
                self._count("health", event)
                if self._leadership.term is not None:  # one worker of all counts
                    what = WELL.decode() if event.gate is None else event.gate.value
                    self._base.registry.add(catalog.HEALTH_CHANGES, what)
            case ModelEvent():
                self._health.models.hear(event)
                self._count("model", event)
            case ProviderEvent():
                self._health.providers.hear(event)
                self._count("provider", event)
            case ConfigEvent():
                self._config_watch.look_soon()
                self._count("config", event)
            case StatusEvent():
                self._health.status_watch.look_soon()
                self._count("status", event)
            case DrainEvent():
                self._coordination.report_soon()
                self._count("drain", event)
            case SnapshotEvent():
                self._hearing.tell(event.version)
                self._follower.look_soon()
                self._count("snapshot", event)
            case None:
                self._base.registry.add(catalog.EVENTS, UNKNOWN)

    def _count(self, kind: str, event: Event) -> None:
        self._base.registry.add(catalog.EVENTS, kind)
        now_ms = self._coordination.server_clock_ms()
        if now_ms is not None:
            delay_s = max(0.0, now_ms - event.at_ms) / MS_PER_S
            self._base.registry.observe(catalog.EVENT_SECONDS, value=delay_s)

    def _catch_up(self) -> None:
        """An end that was missed must not bar anything: Redis is asked about all of it."""
        self._bars.clear()
        self._hearing.begin()
        self._look_soon(is_up=self._base.redis.is_up)

    def _look_soon(self, *, is_up: bool) -> None:
        if is_up:  # a call that cannot be sent would count as lost
            self._follower.look_soon()
            self._health.status_watch.look_soon()
            self._config_watch.look_soon()

    async def follow(self) -> None:
        """Read the present snapshot, and rank by it."""
        await self._follower.look()

    async def _follow(self) -> None:
        await self._follower.look()
        self._watch_bus()
        now_ms = self._coordination.server_clock_ms()
        version = self._current.view.snapshot.version
        if now_ms is not None and self._bus.is_up and self._hearing.is_deaf(version, now_ms):
            self._bus.renew()
        self.refit()

    def refit(self) -> None:
        """Rank by the configuration in force, if it has changed since."""
        if self._reading is not None and self._fitted_to is not self._current.serving:
            self._fit(*self._reading)

    def _watch_bus(self) -> None:
        """Say once that nothing is heard though Redis is there, such as for want of rights."""
        now_s = self._base.clock.monotonic_s()
        if self._bus.is_up or not self._base.redis.is_up:
            self._deaf_since_s = None
        elif self._deaf_since_s is None:
            self._deaf_since_s = now_s
        elif now_s - self._deaf_since_s > DEAF_S:
            self._deaf_since_s = math.inf  # told
            cause = self._bus.fault
            self._base.log.event(events.EVENTS_LOST, worker=self._base.worker_id, cause=cause)

    def _take_over(self, reading: Reading) -> None:
        now_s = self._base.clock.monotonic_s()
        self._reading = (reading, now_s)
        self._bars.take_over(reading.snapshot, server_now_ms=reading.server_ms, now_s=now_s)
        self._fit(reading, now_s)
        for tell in self._when_read:
            tell(reading)

    def _fit(self, reading: Reading, read_at_s: float) -> None:
        self._fitted_to = self._current.serving
        self._current.view = build_view(
            reading,
            self._fitted_to.runtime,
            self._plans,
            read_at_s,
            is_degraded=self._health.board.pool.is_degraded,
            is_routed=self._is_routed,
        )

    def _is_routed(self, target: Target) -> bool:
        board, route = self._health.board, target.route
        if not board.bars_any:
            return True
        return board.barring(route.provider, target.key.id, route.subject) is None

    async def _survey_all(self) -> Findings:
        runtime, keys = self._current.serving.runtime, self._base.keys
        found = await self._survey.take(
            target.limits for by_key in runtime.targets.values() for target in by_key.values()
        )
        found.models = await self._health.models.look(list_models(runtime))
        standings = await self._health.providers.look_at(list_hosts(runtime))
        for provider, standing in standings.items():
            if standing.state is not BreakerState.CLOSED or standing.failed:
                found.providers[keys.outage(provider)] = standing
        found.speed_ranks = (await self._speeds.read()).ranks
        return found

    def _changed_ranks(self, written: Mapping[RouteId, int]) -> Mapping[RouteId, int | None]:
        routes = self._current.serving.runtime.catalog.routes
        return changed_ranks(written, routes, self._current.view.signals.routes)

    def _note_unreadable(self, detail: str) -> None:
        self._base.log.event(events.SNAPSHOT_UNREADABLE, worker=self._base.worker_id, detail=detail)

    def _read(self) -> None:
        put, view = self._base.registry.put, self._current.view
        put(catalog.EVENTS_UP, value=int(self._bus.is_up))
        put(catalog.EVENTS_RECONNECTS, value=self._bus.reconnects)
        put(catalog.SNAPSHOT_VERSION, value=view.snapshot.version)
        age_ms = view.age_ms(self._base.clock.monotonic_s())
        if age_ms is not None:
            put(catalog.SNAPSHOT_AGE, value=age_ms / MS_PER_S)
        put(catalog.SNAPSHOTS_BUILT, value=self._builder.built)
        put(catalog.SNAPSHOTS_REFUSED, value=self._builder.refused)
