"""The life of a worker process.

Start: configuration, Redis, upstream pool, sockets. End on SIGTERM: listening stops, open streams
finish within `drain_s`, settlements are written, exit code 0. SIGHUP reloads the configuration
between two requests.
"""

import asyncio
import gc
import os
import signal
import socket
import time
from collections.abc import Mapping
from typing import Final
from zlib import crc32

import msgspec
import uvicorn
import uvloop

from cluster_gw.app.administration import build_desk
from cluster_gw.app.base import Servers
from cluster_gw.app.configuration import Configuration
from cluster_gw.app.engine import Engine
from cluster_gw.app.quiet_server import QuietServer
from cluster_gw.app.tracing import tracing_of
from cluster_gw.background.loss_watch import LossWatch
from cluster_gw.background.parent_watch import POLL_S, ParentWatch
from cluster_gw.background.runner import Runner
from cluster_gw.background.schema_watch import SchemaWatch
from cluster_gw.errors import ScriptContractError
from cluster_gw.pipeline.backlog import KeyTurns
from cluster_gw.server.admin.table import build_admin
from cluster_gw.server.control import ControlPlane
from cluster_gw.server.inference import Deps
from cluster_gw.server.protocol import with_head_limit
from cluster_gw.server.routes import build_app
from cluster_gw.settings.loading import load_plain, read_shared
from cluster_gw.store.alone import LostPolicy, Mode
from cluster_gw.store.sealing import seal_of
from cluster_gw.telemetry import catalog, events
from cluster_gw.telemetry.library_log import libraries_told
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import Registry
from cluster_gw.telemetry.seldom import EACH_S, Seldom
from cluster_gw.units import BYTES_PER_KB

ORPHAN_DRAIN_S: Final = 1.0
CACHE_SETTLE_S: Final = 1.0
LOG_FLUSH_S: Final = 0.1
LOSS_LOOK_S: Final = 5.0
SCHEMA_LOOK_S: Final = 0.1
KEEP_ALIVE_S: Final = 75  # longer than the idle timeout of common load balancers
GC_THRESHOLDS: Final = (10_000, 50, 100)  # p99 at saturation fell from 20 to 5 ms


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor tells a worker.

    Attributes:
        config_fd: memory that holds the configuration, written by the supervisor.
        socket_fd: inherited listening socket of the data port.
        control_path: unix socket to answer the supervisor on.
        parent_pid: the supervisor; the worker ends when it has another parent.
        redis_url: where Redis is, with `embedded:` already resolved.
    """

    config_fd: int
    socket_fd: int
    control_path: str
    parent_pid: int
    worker_id: str
    redis_url: str


def run_worker(options: WorkerOptions) -> int:
    """Run a worker until it is told to stop; the process's exit code."""
    worker = Worker(options, os.environ)
    try:
        with (
            libraries_told(worker.log),
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            return runner.run(worker.run())
    finally:
        worker.log.close()


class Worker:
    """One worker process.

    Attributes:
        log: its log; whoever runs the worker closes it.
    """

    def __init__(self, options: WorkerOptions, environ: Mapping[str, str]) -> None:
        self._options = options
        self._environ = environ
        base = read_shared(options.config_fd, environ)
        loaded = load_plain(base.plain, base)
        self._settings, self._master_keys = loaded.settings, loaded.master_keys
        self.log = Log(console=self._settings.telemetry.is_text)
        self._registry = Registry()
        self._registry.on_read(self._count_lost_lines)
        self._exit_code = 0
        self._losses = Seldom(time.monotonic)
        self._configuration = Configuration(base, log=self.log, registry=self._registry)
        self._current = self._configuration.current
        self._current.turns = KeyTurns(crc32(options.worker_id.encode()))
        self._tracing = tracing_of(
            self._settings.telemetry, options.worker_id, environ, self.log, self._registry
        )

    async def run(self) -> int:
        """Serve until told to stop."""
        loop = asyncio.get_running_loop()
        cache_url = self._settings.redis.cache_url
        engine = Engine(
            self._current,
            servers=Servers(
                url=self._options.redis_url,
                prefix=self._settings.redis.prefix,
                cache_url=None if cache_url is None else cache_url.reveal(),
                seal=seal_of(*[key.reveal() for key in self._master_keys]),
            ),
            worker_id=self._options.worker_id,
            log=self.log,
            registry=self._registry,
            lost=LostPolicy(
                mode=Mode(self._settings.redis.when_lost),
                spare_workers=self._settings.server.workers,
            ),
        )
        engine.redis.on_change(lambda is_up: self._note_redis(engine, is_up=is_up))
        engine.config_watch.when_read(self._configuration.take_over)
        self._configuration.when_changed(engine.refit)
        self._configuration.when_changed(engine.coordination.report_soon)
        tracer = None if self._tracing is None else self._tracing.tracer
        self._data = self._data_server(msgspec.structs.replace(engine.deps, tracer=tracer))
        engine.coordination.when_drained(self._send_away)
        control = self._control_server(engine)
        runner = Runner(self.log)
        # Before anything that may take long: a worker without its parent must not hold the port.
        self._start_jobs(runner, loop, engine)
        control_task = asyncio.create_task(control.serve())
        try:
            await self._open(engine)
            await self._serve_data()
        finally:
            await engine.caches.settle(CACHE_SETTLE_S)
            unsettled = await engine.settle()
            self.log.event(
                events.WORKER_STOPPED,
                worker=self._options.worker_id,
                in_flight=self._current.in_flight,
                unsettled=unsettled,
            )
            control.should_exit = True
            await control_task
            await runner.stop()
            if self._tracing is not None:
                await self._tracing.stop()
            await engine.stop()
        return self._exit_code

    async def _open(self, engine: Engine) -> None:
        try:
            if not await engine.start():
                self._log_redis_lost(engine)
        except ScriptContractError as refusal:
            self._leave_redis(str(refusal))

    def _control_server(self, engine: Engine) -> QuietServer:
        plane = ControlPlane(
            self._current,
            self._registry,
            lambda: engine.is_redis_used,
            self._begin_drain,
            time.monotonic,
            build_admin(build_desk(engine, self._configuration)),
        )
        return QuietServer(
            uvicorn.Config(
                plane.app(),
                uds=self._options.control_path,
                log_config=None,
                log_level="critical",
                lifespan="off",
                access_log=False,
                ws="none",
            )
        )

    async def _serve_data(self) -> None:
        with socket.socket(fileno=self._options.socket_fd) as listener:
            listener.settimeout(0)
            self._current.is_started = True
            self.log.event(
                events.WORKER_STARTED,
                worker=self._options.worker_id,
                config_version=self._configuration.version,
                file_version=self._configuration.base.version,
            )
            tune_gc()
            await self._data.serve_on(listener)

    def _data_server(self, deps: Deps) -> QuietServer:
        server = self._settings.server
        return QuietServer(
            uvicorn.Config(
                build_app(deps),
                interface="asgi3",
                http=with_head_limit(server.max_head_kb * BYTES_PER_KB),
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=max(1, round(server.drain_s)),
                backlog=2048,
            )
        )

    def _start_jobs(self, runner: Runner, loop: asyncio.AbstractEventLoop, engine: Engine) -> None:
        runner.every(LOG_FLUSH_S, "log_flush", self._flush_log)
        watch = ParentWatch(self._options.parent_pid, self._lose_parent)
        runner.every(POLL_S, "parent_watch", watch.look)
        losses = LossWatch(lambda: engine.lost_settlements, self._note_losses)
        runner.every(LOSS_LOOK_S, "loss_watch", losses.look)
        runner.every(LOSS_LOOK_S, "stranger_watch", lambda: self._note_strangers(engine))
        runner.every(EACH_S, "flap_watch", self._note_flapping)
        schema = SchemaWatch(engine.open_schema, self._leave_redis)
        engine.redis.on_change(lambda is_up: schema.note_connection(is_up=is_up))
        runner.every(SCHEMA_LOOK_S, "schema_watch", schema.look)
        engine.start_jobs(runner)
        if self._tracing is not None:
            self._tracing.start_jobs(runner)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._begin_drain)
        loop.add_signal_handler(signal.SIGHUP, self._reload)

    def _note_losses(self, count: int) -> None:
        self.log.event(events.SETTLEMENT_LOST, count=count)

    async def _note_strangers(self, engine: Engine) -> None:
        count, networks = engine.deps.guard.take_news()
        if count:
            self.log.event(events.STRANGERS_BARRED, networks=networks, count=count)

    async def _note_flapping(self) -> None:
        count = self._losses.take_untold()
        if count:
            worker = self._options.worker_id
            self.log.event(events.REDIS_UNSTEADY, worker=worker, what="connection", count=count)

    def _count_lost_lines(self) -> None:
        self._registry.put(catalog.LOG_LINES_DROPPED, value=self.log.lost_lines)

    async def _flush_log(self) -> None:
        self.log.tidy()

    def _begin_drain(self) -> None:
        if self._current.is_draining:
            return
        self._current.is_draining = True
        self.log.event(
            events.WORKER_DRAINING,
            worker=self._options.worker_id,
            in_flight=self._current.in_flight,
        )
        self._data.stop_accepting()

    def _send_away(self, is_drained: bool) -> None:  # noqa: FBT001 - as it was heard
        if not self._current.is_draining:
            self._data.send_away(is_away=is_drained)

    def _lose_parent(self) -> None:
        self.log.event(events.PARENT_LOST, worker=self._options.worker_id)
        self._data.config.timeout_graceful_shutdown = round(ORPHAN_DRAIN_S)
        self._begin_drain()

    def _leave_redis(self, reason: str) -> None:
        if self._current.is_draining:
            return
        self._exit_code = 1
        self.log.event(events.SCHEMA_REFUSED, worker=self._options.worker_id, detail=reason)
        self._begin_drain()

    def _reload(self) -> None:
        """Swap in a new file, or keep the old one and say why."""
        self._configuration.reload(lambda: read_shared(self._options.config_fd, self._environ))

    def _note_redis(self, engine: Engine, *, is_up: bool) -> None:
        if not self._current.is_started or self._current.is_draining:
            return  # the first connection and the last goodbye are no news
        if not is_up:
            if self._losses.may_tell_loss():
                self._log_redis_lost(engine)
        elif self._losses.may_tell_return():
            self.log.event(events.REDIS_RETURNED, worker=self._options.worker_id)

    def _log_redis_lost(self, engine: Engine) -> None:
        worker, cause = self._options.worker_id, engine.redis.fault
        self.log.event(events.REDIS_LOST, worker=worker, cause=cause)


def tune_gc() -> None:
    """Keep what start-up built out of the collector's way."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
