"""One worker process of the group, with its listening socket and its control socket."""

import os
import re
import secrets
import signal
import socket
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.supervisor.child import Child, Exit, Process, popen
from cluster_gw.supervisor.control import Readiness, WorkerControl
from cluster_gw.supervisor.listening import WorkerSocket
from cluster_gw.supervisor.merging import MetricSum
from cluster_gw.units import BYTES_PER_MB

REDIS_URL_VARIABLE: Final = "GW_WORKER_REDIS_URL"  # not an argument: those are seen by everybody
ENVIRON: Final = MappingProxyType(
    {
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_TRIM_THRESHOLD_": str(16 * BYTES_PER_MB),
        "MALLOC_MMAP_THRESHOLD_": str(BYTES_PER_MB),
    }
)
"""What a worker's environment says unless the group's own does.

numpy's library would start a thread for each core in each worker; nothing here is as large. And
glibc, unasked, gives memory back to the system between one body of 30 KB and the next, whenever
such a body happens to lie last: three to twelve page faults a request, or none, by luck.
"""

STUCK_AFTER_LOOKS: Final = 2
SILENT_S: Final = 15.0  # no request takes the loop for so long; half of new connections wait
START_S: Final = 60.0  # until the first sign of life; a loaded machine imports slowly
ABSENCE_S: Final = 2.0  # a parent that was not there so long knows nothing of its workers
LONGEST_QUEUE_IN_STARTS: Final = 2  # one start may fail without costing anybody a connection


class WorkerCommand(msgspec.Struct, frozen=True, kw_only=True):
    """How workers are started.

    Attributes:
        words: the command without its options.
        config_fd: where the worker reads its configuration; see `settings.shared`.
        environ: its environment, with the address of Redis in it.
    """

    words: tuple[str, ...]
    config_fd: int
    environ: dict[str, str]


class Worker:
    """Keeps one worker process alive on a socket that outlives it.

    Args:
        slot: its place in the group, from 0.
        listening: the socket it accepts connections from.
        control_path: where it serves its control routes.
        command: how it is started.
        silent_s: how long it may say nothing.

    Attributes:
        is_drained: whether it said last that it takes no part; holds until its next life is up.
    """

    def __init__(
        self,
        slot: int,
        listening: WorkerSocket,
        control_path: str,
        command: WorkerCommand,
        silent_s: float = SILENT_S,
    ) -> None:
        self.child = Child(f"worker-{slot}", self._spawn)
        self.control = WorkerControl(control_path)
        self.is_drained = False
        self._slot = slot
        self._listening = listening
        self._control_path = control_path
        self._command = command
        self._silent_s = silent_s
        self._life = ""
        self._is_up = False
        self._version = 1
        self._version_told = 1
        self._silent_looks = 0
        self._silent_since_s: float | None = None
        self._tended_s = 0.0
        self._failed_starts = 0

    @property
    def id(self) -> str:
        """Names the present life of it; Redis knows it by that name."""
        return self._life

    @property
    def is_stuck(self) -> bool:
        """Whether the process lives and has gone silent after it was up."""
        silent = self._silent_looks >= STUCK_AFTER_LOOKS and self._is_up
        return silent and self.child.pid is not None

    @property
    def is_answering(self) -> bool:
        """Whether the process lives, was up and has not gone silent."""
        return self._is_up and self.child.pid is not None and not self.is_stuck

    def tend(self, now_s: float, metrics: MetricSum) -> Exit | None:
        """Look after the process; see `Child.tend`. The counters of a life that ended stay."""
        life = self._life
        ended = self.child.tend(now_s)
        if ended is not None:
            metrics.retire(life)
            self._failed_starts = 0 if self._is_up else self._failed_starts + 1
            if self._failed_starts == LONGEST_QUEUE_IN_STARTS:
                self._listening.step_back()
            self._is_up = False
        return ended

    def kill_if_silent(self, now_s: float) -> int | None:
        """Kill a process that has said nothing for too long, stopped or not; give its pid once.

        Its place in the group, and the connections that wait for it, go to the next life. Looks
        that failed because this process itself stood still are not held against it.

        Args:
            now_s: clock; to be called several times a second.
        """
        was_away = now_s - self._tended_s > ABSENCE_S
        self._tended_s = now_s
        pid = self.child.pid
        if self._silent_looks == 0 or pid is None:
            self._silent_since_s = None
        elif self._silent_since_s is None or was_away:
            self._silent_since_s = now_s
        elif now_s - self._silent_since_s >= (self._silent_s if self._is_up else START_S):
            self._silent_since_s = now_s
            self.child.signal(signal.SIGKILL)
            return pid
        return None

    async def look(self) -> Readiness | None:
        """Ask what the worker is, and tell it what it has to know."""
        life = self._life
        state = await self.control.readiness()
        if life != self._life:
            return None  # the answer may be of the life before
        self._silent_looks = self._silent_looks + 1 if state is None else 0
        if state is not None and state.status != "starting":
            self._is_up = True
            self.is_drained = state.status == "draining"
        self._announce()
        return state

    async def read_metrics(self, metrics: MetricSum) -> bool:
        """Note the worker's counters under this life of it; tell whether it answered."""
        life = self._life
        snapshot = await self.control.metrics()
        if snapshot is None or life != self._life or self.child.pid is None:
            return False
        metrics.update(life, snapshot)
        return True

    def reload(self, version: int) -> None:
        """Have the worker read its configuration again as soon as it can take the signal.

        Args:
            version: of the configuration that is now in force.
        """
        self._version = version
        self._announce()

    def close_listening(self) -> None:
        """Give up the parent's copy of the listening socket."""
        self._listening.close()

    def _announce(self) -> None:
        # SIGHUP ends a process that has not come far enough to catch it.
        if self._version_told < self._version and self._is_up:
            self._version_told = self._version
            self.child.signal(signal.SIGHUP)

    def _spawn(self, _start: int) -> Process:
        Path(self._control_path).unlink(missing_ok=True)
        host = re.sub(r"[^a-z0-9-]", "-", socket.gethostname().lower())[:40] or "host"
        self._life = f"{host}-{self._slot}-{secrets.token_hex(3)}"
        self._version_told = self._version
        self._silent_looks = 0
        descriptor = self._listening.fileno()
        return popen(
            [
                *self._command.words,
                *("--config-fd", str(self._command.config_fd)),
                *("--fd", str(descriptor)),
                *("--control-path", self._control_path),
                *("--parent-pid", str(os.getpid())),
                *("--worker-id", self._life),
            ],
            environ={**ENVIRON, **self._command.environ},
            pass_fds=(descriptor, self._command.config_fd),
        )
