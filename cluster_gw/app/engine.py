"""The inner parts of a worker, joined: Redis, upstream pool, the loop."""

import asyncio
import random
import secrets as entropy
import time
from typing import Final

from cluster_gw.app.base import Base, Servers
from cluster_gw.app.caching import CacheParts
from cluster_gw.app.configuration import watch_config
from cluster_gw.app.coordination import Coordination
from cluster_gw.app.health import Health
from cluster_gw.app.penalties import Penalties
from cluster_gw.app.quotas import QuotaReports
from cluster_gw.app.records import RecordWatch
from cluster_gw.app.sessions import SessionParts
from cluster_gw.app.sharing import Sharing
from cluster_gw.app.side_store import SideStore
from cluster_gw.app.standby import Standby
from cluster_gw.app.usage import Usage
from cluster_gw.app.windows import Windows
from cluster_gw.background.learner import LEARN_S, Learner
from cluster_gw.background.runner import Runner
from cluster_gw.core.routing.posterior import seed_chance
from cluster_gw.errors import StoreLostError
from cluster_gw.pipeline.admit import Admitter
from cluster_gw.pipeline.alarms import Alarms
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.counting import Counting
from cluster_gw.pipeline.estimator import Estimator
from cluster_gw.pipeline.foresight import Foresight
from cluster_gw.pipeline.holding import Holding
from cluster_gw.pipeline.keeping import Keeper
from cluster_gw.pipeline.memory import Memory
from cluster_gw.pipeline.record import Recorder
from cluster_gw.pipeline.repeating import Repeating
from cluster_gw.pipeline.settle import Accounts
from cluster_gw.pipeline.shell import Shell
from cluster_gw.pipeline.waiting import WaitingRoom
from cluster_gw.server.ids import Entropy, new_id
from cluster_gw.server.inference import Deps
from cluster_gw.server.serving import Current
from cluster_gw.server.stranger_guard import StrangerGuard
from cluster_gw.store.admission import Admissions
from cluster_gw.store.alone import SHARED, Alone, LostPolicy
from cluster_gw.store.bonds import Bonds
from cluster_gw.store.cache_index import CacheIndex
from cluster_gw.store.client import RedisClient
from cluster_gw.store.clients import Holds
from cluster_gw.store.cursor import Cursors
from cluster_gw.store.estimates import Estimates
from cluster_gw.store.gates import Gates
from cluster_gw.store.keys import Keys
from cluster_gw.store.meta import check_schema, open_schema
from cluster_gw.store.overlays import Overlays
from cluster_gw.store.repeats import Repeats
from cluster_gw.store.request_records import RequestRecords
from cluster_gw.store.scripts import load_scripts
from cluster_gw.store.strangers import Strangers
from cluster_gw.store.tallies import FLUSH_S
from cluster_gw.telemetry import catalog
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import Registry
from cluster_gw.upstream.client import UpstreamClient

REDIS_START_S: Final = 5.0
SETTLE_WITHIN_S: Final = 5.0
NS_PER_MS: Final = 1_000_000


class Engine:
    """The inner parts of a worker: Redis, upstream pool, and the loop that joins them.

    Args:
        current: the configuration in force.
        servers: where Redis is.
        worker_id: names this worker in its leases.
        log: where events go.
        registry: where numbers go.
        lost: what is let in while Redis is away.

    Attributes:
        base: its tools.
        redis: the worker's client.
        health: of models over all their keys, and of keys.
        penalties: what is held against routes, for operators.
        windows: what those of keys count, for operators.
        quotas: what providers say of their limits.
        coordination: this worker among the others.
        overlays: what was changed of the configuration.
        config_watch: reads that.
        deps: what the endpoints work with.
        foresight: tells operators how a request would be routed.
        records: what is kept of requests that have ended.
        caches: the response cache.
        usage: what was used.
    """

    def __init__(
        self,
        current: Current,
        *,
        servers: Servers,
        worker_id: str,
        log: Log,
        registry: Registry,
        lost: LostPolicy = SHARED,
    ) -> None:
        clock = Clock(monotonic_s=time.monotonic, wall_ms=wall_ms)
        noise = Entropy(entropy.token_bytes)
        self._scripts, self._keys = load_scripts(), Keys(servers.prefix)
        self.redis = RedisClient(servers.url, prefix=servers.prefix)
        self._admissions = Admissions(
            self.redis,
            self._scripts,
            self._keys,
            worker_id=worker_id,
            clock_ms=wall_ms,
            monotonic_s=clock.monotonic_s,
        )
        self.coordination = Coordination(
            self.redis,
            self._scripts,
            self._keys,
            worker_id=worker_id,
            current=current,
            log=log,
            registry=registry,
        )
        self._upstream = UpstreamClient(
            reuse=current.serving.runtime.reuse, chance=random.SystemRandom().random
        )
        base = self.base = Base(
            redis=self.redis,
            scripts=self._scripts,
            keys=self._keys,
            worker_id=worker_id,
            clock=clock,
            log=log,
            registry=registry,
        )
        self.health = Health(base, self._admissions.settlements, self._upstream, current)
        RecordWatch(base)
        self.overlays = Overlays(self.redis, self._scripts, self._keys)
        self.config_watch = watch_config(base, self.overlays)
        self._sharing = Sharing(
            base,
            current,
            bars=self._admissions.bars,
            health=self.health,
            coordination=self.coordination,
            config_watch=self.config_watch,
        )
        self._alone = Alone(
            self.redis,
            self._scripts,
            whole=self._keys.workers(),
            policy=lost,
            workers=self.coordination.most_workers,
            monotonic_s=clock.monotonic_s,
        )
        self._standby = Standby(
            self.redis,
            self._scripts,
            self._keys,
            alone=self._alone,
            coordination=self.coordination,
            current=current,
            worker_id=worker_id,
        )
        self._standby.report(log, registry)
        self._sharing.when_read(self._standby.take_over)
        self._admissions.go_on_with(self._alone)
        self._current, self._registry = current, registry
        holds = Holds(
            self.redis,
            self._scripts,
            self._keys,
            self._admissions.settlements,
            worker_id=worker_id,
            monotonic_s=clock.monotonic_s,
        )
        holds.go_on_with(self._alone)
        self._bonds = Bonds(self.redis, self._scripts, self._keys)
        estimator = self._estimator = Estimator()
        holding = Holding(holds, estimator, registry)
        conditions = self.health.conditions
        self.quotas, self.windows = QuotaReports(base).quotas, Windows(base, current)
        estimates = Estimates(self.redis, self._scripts, self._keys)
        memory = Memory(Cursors(self.redis, self._scripts, self._keys, self._alone), self._bonds)
        self._side = SideStore(
            self.redis,
            servers,
            worker_id=worker_id,
            log=log,
            registry=registry,
            monotonic_s=clock.monotonic_s,
        )
        self.records = RequestRecords(
            self._side.redis, self._scripts, self._keys, setting=self._side.setting
        )
        self.penalties = Penalties(
            base, current, health=self.health, records=self.records, bars=self._admissions.bars
        )
        self._keeper = Keeper(self.records, worker_id, clock)
        self.foresight = Foresight(
            memory=memory,
            conditions=conditions,
            estimates=estimates,
            gates=Gates(self.redis, self._scripts, self._keys, clock_ms=wall_ms),
        )
        counting = Counting(self._admissions, holding, conditions, estimator, registry)
        shell = Shell(
            admitter=Admitter(counting, clock),
            accounts=Accounts(counting),
            conditions=conditions,
            quotas=self.quotas,
            upstream=self._upstream,
            alarms=Alarms(asyncio.get_running_loop()),
            waiting=WaitingRoom(clock),
            memory=memory,
            recorder=Recorder(registry, log, clock, self._keeper),
            sessions=SessionParts(
                self._side.redis,
                self._keys,
                servers,
                self.coordination.most_workers,
                clock,
                registry,
            ).sessions,
            repeating=Repeating(
                Repeats(
                    self._side.answers,
                    self._scripts,
                    self._keys,
                    servers.seal,
                    worker_id=worker_id,
                ),
                registry,
                clock,
                workers=self.coordination.most_workers,
                within_s=servers.read_s,
            ),
            clock=clock,
        )
        self.caches = CacheParts(base, self._side.answers, servers, current).serving(shell)
        self.deps = Deps(
            current=current,
            shell=shell,
            caches=self.caches,
            guard=StrangerGuard(strangers_of(base, self._alone), clock.monotonic_s),
            registry=registry,
            log=log,
            clock=clock,
            chance=seed_chance(entropy.randbits(64)),
            mint_id=lambda: new_id(wall_ms(), noise),
        )
        self.learner = Learner(
            estimator, estimates, lambda: current.serving.runtime.policy.estimates
        )
        self.usage = Usage(base, self._admissions.usage, current, self.coordination.server_clock_ms)
        registry.on_read(self._read)

    def start_jobs(self, runner: Runner) -> None:
        """Begin what has to be done every few seconds."""
        self.coordination.start_jobs(runner)
        self.health.start_jobs(runner)
        self._standby.start_jobs(runner)
        self._sharing.start_jobs(runner)
        runner.every(LEARN_S, "learn", self.learner.look)
        runner.every(FLUSH_S, "statistics", self._admissions.tallies.flush)
        self.usage.start_jobs(runner)

    def refit(self) -> None:
        """Work by the configuration in force, if it has changed since."""
        self._upstream.keep(self._current.serving.runtime.reuse)
        self._sharing.refit()

    async def start(self) -> bool:
        """Connect; tell whether Redis answers.

        Without it nothing is known, so nothing is admitted, but probes and listings must answer.
        """
        await self._upstream.start()
        self._sharing.start()
        self._side.start()
        try:
            await self.redis.start(REDIS_START_S)
            await self.open_schema()
        except StoreLostError:
            return False
        await self.config_watch.look()
        await self._standby.look()
        return True

    async def visit(self) -> None:
        """Connect for a look from outside: nobody takes this for a worker.

        Raises:
            StoreLostError: Redis is away.
            ScriptContractError: a newer version writes what this one would misread.
        """
        self.coordination.stay_unlisted()
        await self._upstream.start()
        self._sharing.start()
        self._side.start()
        await self.redis.start(REDIS_START_S)
        await check_schema(self.redis, self._keys)
        await self.config_watch.read()
        await self._sharing.follow()

    async def open_schema(self) -> None:
        """Register the schema this worker writes.

        Raises:
            ScriptContractError: a newer worker wrote what this one would misread.
            StoreLostError: Redis is away.
        """
        await open_schema(self.redis, self._scripts, self._keys)

    async def settle(self) -> int:
        """Write what is still to be settled; how many settlements could not be written."""
        await self.usage.end()
        if self.redis.is_cut_off:
            return self._admissions.pending + self._alone.journal.unwritten
        self._alone.flush()
        return await self._admissions.drain(SETTLE_WITHIN_S)

    @property
    def cache_index(self) -> CacheIndex:
        """Which answers are stored in the response cache."""
        return CacheIndex(self._side.redis, self._scripts, self._keys)

    @property
    def is_redis_used(self) -> bool:
        """Whether Redis is connected and decides: it may be there and not take writes."""
        return self.redis.is_up and not self._alone.is_away

    @property
    def is_alone(self) -> bool:
        """Whether Redis is away, or back but not told of everything yet."""
        return bool(self._alone.doubts)

    @property
    def lost_settlements(self) -> int:
        """Settlements given up since the start, for whatever reason."""
        settlements = self._admissions.settlements
        return settlements.abandoned + settlements.faults

    async def stop(self) -> None:
        """Leave the other workers and close every connection."""
        await self._sharing.stop()
        await self.health.stop()
        await self.quotas.stop()
        await self._alone.close()
        await self._standby.stop()
        await self.coordination.leave(is_clear=self._admissions.pending == 0)
        await self._upstream.close()
        await self._admissions.close()
        await self.caches.close()
        await self._side.stop()
        await self.redis.close()

    def _read(self) -> None:
        put, redis, settlements = self._registry.put, self.redis, self._admissions.settlements
        put(catalog.REDIS_CALLS, value=redis.calls)
        put(catalog.REDIS_FLUSHES, value=redis.flushes)
        put(catalog.REDIS_LOST, value=redis.lost)
        put(catalog.REDIS_RECONNECTS, value=redis.reconnects)
        put(catalog.REDIS_UP, value=int(redis.is_up))
        put(catalog.IN_FLIGHT, value=self._current.in_flight)
        put(catalog.SETTLEMENTS_PENDING, value=self._admissions.pending)
        put(catalog.SETTLEMENTS_LOST, value=self.lost_settlements)
        put(catalog.SETTLEMENTS_LATE, value=settlements.late)
        put(catalog.BONDS_UNREAD, value=self._bonds.unread)
        put(catalog.BONDS_UNWRITTEN, value=self._bonds.unwritten)
        left_out, left_out_notable = self._keeper.left_out
        put(catalog.REQUEST_RECORDS, "kept", value=self.records.kept)
        put(catalog.REQUEST_RECORDS, "lost", value=self.records.lost)
        put(catalog.REQUEST_RECORDS, "left_out", value=left_out)
        put(catalog.REQUEST_RECORDS, "left_out_notable", value=left_out_notable)
        put(catalog.ESTIMATE_PAIRS, value=self._estimator.pairs)
        put(catalog.ESTIMATE_LESSONS_LOST, value=self._estimator.lost)
        put(catalog.CONFIG_VERSION, value=self._current.serving.runtime.catalog.version)
        put(catalog.CONFIG_FILE_VERSION, value=self._current.serving.file_version)


def strangers_of(base: Base, alone: Alone) -> Strangers:
    """What counts requests without a valid key, with Redis and without."""
    strangers = Strangers(base.redis, base.scripts, base.keys)
    strangers.go_on_with(alone)
    return strangers


def wall_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // NS_PER_MS
