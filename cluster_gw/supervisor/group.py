"""The parent of one group: starts everything, looks after it, ends it in order.

Start: lock and embedded Redis, listening sockets, workers, operations port. End: the other way
round, so that a worker never loses Redis while it settles.
"""

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from cluster_gw.settings import Loaded
from cluster_gw.supervisor import events
from cluster_gw.supervisor.admin_door import TOKEN_VARIABLE, named_tokens
from cluster_gw.supervisor.admin_relay import AdminRelay
from cluster_gw.supervisor.child import Child, Exit
from cluster_gw.supervisor.companion import Companion
from cluster_gw.supervisor.configuration import Configuration
from cluster_gw.supervisor.control import Readiness
from cluster_gw.supervisor.embedded import EmbeddedServer, find_binary
from cluster_gw.supervisor.failure import ExitCode, StartError
from cluster_gw.supervisor.listening import WorkerSocket, listen, listen_alone
from cluster_gw.supervisor.merging import MetricSum, merge_readiness
from cluster_gw.supervisor.operations import OperationsServer, operations_app
from cluster_gw.supervisor.own_metrics import OwnNumbers
from cluster_gw.supervisor.runtime_dir import RuntimeDir
from cluster_gw.supervisor.steering import Steering
from cluster_gw.supervisor.worker import REDIS_URL_VARIABLE, SILENT_S, Worker, WorkerCommand
from cluster_gw.telemetry.library_log import libraries_told
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import Family
from cluster_gw.wire.host_port import host_port

EMBEDDED: Final = "embedded:"
WORKER_WORDS: Final = (sys.executable, "-m", "cluster_gw", "worker")
TEND_S: Final = 0.05
LOOK_S: Final = 1.0
LOOK_WHILE_STARTING_S: Final = 0.1
WATCH_S: Final = 0.5
GRACE_S: Final = 5.0  # a worker that drains needs a moment more than its longest request
COMPANION_GRACE_S: Final = 3.0
EMBEDDED_GRACE_S: Final = 15.0
PREFIX_VARIABLE: Final = "GW_REDIS__PREFIX"
FATAL_CODES: Final = frozenset({ExitCode.BAD_CONFIGURATION, ExitCode.DEPENDENCY_UNREACHABLE})


class GroupOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a group runs.

    Attributes:
        loaded: the checked configuration.
        config_path: where it came from.
        environ: environment of every worker; overrides of the command line are in it.
        data_dir: folder of the embedded Redis.
        worker_words: command that starts a worker.
        companions: further processes; the group is ready when they are.
        silent_s: how long a worker may say nothing before it is killed and started anew.
        hang_up_ends: whether SIGHUP ends the group, as the end of its terminal; else it has the
            configuration read again.
    """

    loaded: Loaded
    config_path: Path
    environ: Mapping[str, str]
    data_dir: Path
    worker_words: tuple[str, ...] = WORKER_WORDS
    companions: tuple[Companion, ...] = ()
    silent_s: float = SILENT_S
    hang_up_ends: bool = False


def run_group(options: GroupOptions, log: Log, on_ready: Callable[[], None] | None = None) -> int:
    """Run a group until it is told to end; give the exit code of the process.

    Args:
        options: what to run.
        log: where the parent's events go; it is closed at the end.
        on_ready: called once when every worker is ready.

    Raises:
        StartError: it could not start; nothing is left behind.
    """
    try:
        with libraries_told(log):
            return asyncio.run(_supervise(options, log, on_ready))
    finally:
        log.close()


async def _supervise(
    options: GroupOptions, log: Log, on_ready: Callable[[], None] | None
) -> ExitCode:
    group = Group(options, log, on_ready)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, group.request_stop)
    loop.add_signal_handler(signal.SIGINT, group.interrupt)
    if not options.hang_up_ends:
        loop.add_signal_handler(signal.SIGHUP, group.request_reload)
    elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup wants it to go on
        loop.add_signal_handler(signal.SIGHUP, group.request_stop)
    try:
        if await group.start():
            await group.run()
    finally:
        await group.stop()
    return group.code


class Group:
    """Everything the parent started.

    Args:
        options: what to run.
        log: where events go.
        on_ready: called once when every worker is ready.
    """

    def __init__(
        self, options: GroupOptions, log: Log, on_ready: Callable[[], None] | None
    ) -> None:
        self.code = ExitCode.OK
        self._options = options
        self._settings = options.loaded.settings
        self._runtime = RuntimeDir()
        self._log = log
        self._on_ready = on_ready
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._was_ready = False
        self._is_announced = on_ready is None
        self._metrics = MetricSum()
        self._numbers = OwnNumbers()
        self._configuration = Configuration(
            options.config_path, options.loaded, options.environ, log, self._numbers
        )
        self._embedded: EmbeddedServer | None = None
        self._embedded_child: Child | None = None
        self._companions: list[Child] = []
        self._workers: list[Worker] = []
        self._steering = Steering()
        self._operations: OperationsServer | None = None
        self._operations_task: asyncio.Task[None] | None = None

    def request_stop(self) -> None:
        """End the group; open requests finish."""
        self._stop.set()

    def interrupt(self) -> None:
        """End the group; a second time, do not wait for open requests."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    def request_reload(self) -> None:
        """Read the configuration again."""
        self._configuration.request()

    async def start(self) -> bool:
        """Start everything; False when the group was told to end meanwhile.

        Raises:
            StartError: something cannot start.
        """
        starting = asyncio.create_task(self._start())
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not starting.done():
            starting.cancel()
            await asyncio.wait({starting})
            return False
        starting.result()
        return True

    async def run(self) -> None:
        """Look after the group until it is told to end, or cannot go on."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tend())
            tasks.create_task(self._look())
            tasks.create_task(self._follow_configuration())

    async def stop(self) -> None:
        """End everything in order: workers, companions, operations port, Redis."""
        self._stop.set()
        was_running = any(worker.child.starts for worker in self._workers)
        if was_running:  # a start that failed has only its error to tell
            self._log.event(events.GROUP_STOPPING, drain_s=self._settings.server.drain_s)
        for worker in self._workers:
            worker.close_listening()
        await self._end([w.child for w in self._workers], self._settings.server.drain_s + GRACE_S)
        await self._end(self._companions, COMPANION_GRACE_S)
        if self._operations is not None and self._operations_task is not None:
            self._operations.should_exit = True
            await asyncio.wait({self._operations_task})
        for worker in self._workers:
            await worker.control.close()
        if self._embedded_child is not None:
            await self._end([self._embedded_child], EMBEDDED_GRACE_S, can_hurry=False)
        if self._embedded is not None:
            self._embedded.release()
        self._configuration.close()
        self._runtime.remove()
        if was_running:
            self._log.event(events.GROUP_STOPPED)

    async def _start(self) -> None:
        server = self._settings.server
        operations_socket = listen_alone(server.admin_host, server.admin_port, "admin-port")
        try:
            sockets = listen(server.host, server.port, server.workers)
        except StartError:
            operations_socket.close()
            raise
        self._configuration.warn()
        command = WorkerCommand(
            words=self._options.worker_words,
            config_fd=self._configuration.fd,
            # A file that changes meanwhile must not give a worker other Redis keys than the rest.
            environ={**self._options.environ, PREFIX_VARIABLE: self._settings.redis.prefix},
        )
        doors = [WorkerSocket(server.host, server.port, each) for each in sockets]
        self._steering = Steering(doors)
        self._workers = [
            Worker(slot, door, self._runtime.socket(f"w{slot}"), command, self._options.silent_s)
            for slot, door in enumerate(doors)
        ]
        metrics = self.metrics if self._settings.telemetry.metrics else None
        environ = self._options.environ
        token = environ.get(TOKEN_VARIABLE)
        relay = AdminRelay(
            lambda: [w.control for w in self._workers if w.is_answering],
            lambda: [w.id for w in self._workers if w.is_answering],
        )
        self._operations = OperationsServer(
            operations_app(
                self.readiness, metrics, token, relay, server.ui_hosts, named_tokens(environ)
            )
        )
        self._operations_task = asyncio.create_task(self._operations.run_on(operations_socket))
        command.environ[REDIS_URL_VARIABLE] = await self._start_redis()
        now_s = time.monotonic()
        for companion in self._options.companions:
            child = companion.child(self._options.environ)
            self._companions.append(child)
            child.start(now_s)
        for worker in self._workers:
            worker.child.start(now_s)

    async def _start_redis(self) -> str:
        url = self._settings.redis.url.reveal()
        if url != EMBEDDED:
            return url
        server = EmbeddedServer(
            self._options.data_dir, self._runtime.socket("redis"), find_binary()
        )
        await server.lock()
        self._embedded = server
        self._embedded_child = Child("embedded-redis", lambda _: server.spawn())
        try:
            self._embedded_child.start(time.monotonic())
        except OSError as error:
            raise StartError(
                f"the embedded Redis cannot be started: {error.strerror}",
                ExitCode.DEPENDENCY_UNREACHABLE,
            ) from None
        await server.wait_until_ready(self._embedded_child)
        self._log.event(
            events.EMBEDDED_STARTED,
            pid=self._embedded_child.pid,
            data_dir=str(server.data_dir),
        )
        return server.url

    async def _tend(self) -> None:
        while not self._stop.is_set():
            now_s = time.monotonic()
            for worker in self._workers:
                self._note(worker.child.name, worker.tend(now_s, self._metrics), is_worker=True)
                silent = worker.kill_if_silent(now_s)
                if silent is not None:
                    self._tell_killed(worker.child.name, silent, "said nothing for too long")
            others = [*self._companions, *([self._embedded_child] if self._embedded_child else [])]
            for child in others:
                self._note(child.name, child.tend(now_s), is_worker=False)
            self._log.tidy()
            await self._pause(TEND_S)

    def _note(self, name: str, ended: Exit | None, *, is_worker: bool) -> None:
        if ended is None:
            return
        if is_worker and not self._was_ready and ended.code in FATAL_CODES:
            # The worker has said why; trying again would say it again.
            self.code = ExitCode(ended.code)
            self._stop.set()
            return
        self._numbers.restarts[name] = self._numbers.restarts.get(name, 0) + 1
        self._log.event(
            events.CHILD_EXITED,
            child=name,
            pid=ended.pid,
            code=ended.code,
            lived_s=round(ended.lived_s, 3),
            restart_in_s=ended.restart_in_s,
        )

    async def _look(self) -> None:
        stuck: set[str] = set()
        while not self._stop.is_set():
            state = await self.readiness()
            self._steering.follow(self._workers)
            await self._announce(state)
            is_steady = self._was_ready and self._is_announced
            for worker in self._workers:
                if worker.is_stuck and worker.child.name not in stuck:
                    name, pid = worker.child.name, worker.child.pid
                    self._log.event(events.WORKER_STUCK, child=name, pid=pid)
            stuck = {worker.child.name for worker in self._workers if worker.is_stuck}
            await self._pause(LOOK_S if is_steady else LOOK_WHILE_STARTING_S)

    async def _announce(self, state: Readiness) -> None:
        """Say once that the group serves, and once that it is complete."""
        if not self._was_ready and state.status in {"ready", "degraded"}:
            listening = [await c.is_listening() for c in self._options.companions]
            if all(listening):
                self._was_ready = True
                self._tell_ready(state)
        if self._was_ready and not self._is_announced and state.status == "ready":
            self._is_announced = True
            if self._on_ready is not None:
                self._on_ready()

    def _tell_ready(self, state: Readiness) -> None:
        server = self._settings.server
        self._log.event(
            events.GROUP_READY,
            url=f"http://{host_port(server.host, server.port)}",
            operations_url=f"http://{host_port(server.admin_host, server.admin_port)}",
            workers=len(self._workers),
            redis=state.redis,
        )

    async def _follow_configuration(self) -> None:
        while not self._stop.is_set():
            if self._configuration.look():
                for worker in self._workers:
                    worker.reload(self._configuration.version)
            await self._pause(WATCH_S)

    async def readiness(self) -> Readiness:
        """Ask every worker and say what the group is."""
        states = await asyncio.gather(*(worker.look() for worker in self._workers))
        return merge_readiness(states, draining=self._stop.is_set())

    async def metrics(self) -> list[Family]:
        """Ask every worker and add up."""
        heard = await asyncio.gather(*(w.read_metrics(self._metrics) for w in self._workers))
        alive = sum(worker.child.pid is not None for worker in self._workers)
        self._numbers.lost_lines = self._log.lost_lines
        own = self._numbers.families(
            workers_wanted=len(self._workers), workers_alive=alive, workers_heard=sum(heard)
        )
        return self._metrics.families(own)

    async def _end(
        self, children: Sequence[Child], within_s: float, *, can_hurry: bool = True
    ) -> None:
        deadline_s = time.monotonic() + within_s
        for child in children:
            child.retire()
            child.signal(signal.SIGTERM)
        is_killed = False
        while not all(child.has_ended() for child in children):
            late = time.monotonic() > deadline_s or (can_hurry and self._hurry.is_set())
            if late and not is_killed:
                is_killed = True
                self._kill(children)
            await asyncio.sleep(TEND_S / 2)

    def _kill(self, children: Sequence[Child]) -> None:
        for child in children:
            if not child.has_ended():
                self._tell_killed(child.name, child.pid, "did not end in time")
                child.signal(signal.SIGKILL)

    def _tell_killed(self, name: str, pid: int | None, reason: str) -> None:
        self._log.event(events.CHILD_KILLED, child=name, pid=pid, reason=reason)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than until the group is told to end."""
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return
