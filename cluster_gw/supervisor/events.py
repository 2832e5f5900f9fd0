"""Log events of the parent, declared like those of a worker."""

from typing import Final

from cluster_gw.telemetry.lines import Event, Level

GROUP_READY: Final = Event(
    name="group.ready",
    level=Level.INFO,
    help="At least one worker is ready to serve.",
    fields=("url", "operations_url", "workers", "redis"),
)
GROUP_STOPPING: Final = Event(
    name="group.stopping",
    level=Level.INFO,
    help="The group drains and ends.",
    fields=("drain_s",),
)
GROUP_STOPPED: Final = Event(
    name="group.stopped", level=Level.INFO, help="Everything the parent started has ended."
)
CHILD_EXITED: Final = Event(
    name="child.exited",
    level=Level.ERROR,
    help="A process of the group ended by itself; it is started again.",
    fields=("child", "pid", "code", "lived_s", "restart_in_s"),
)
CHILD_KILLED: Final = Event(
    name="child.killed",
    level=Level.WARNING,
    help="A process did not end in time, or a worker said nothing for too long: it was killed.",
    fields=("child", "pid", "reason"),
)
EMBEDDED_STARTED: Final = Event(
    name="embedded.started",
    level=Level.INFO,
    help="The embedded Valkey answers.",
    fields=("pid", "data_dir"),
)
WORKER_STUCK: Final = Event(
    name="worker.stuck",
    level=Level.ERROR,
    help="A worker process lives and its loop does not turn.",
    fields=("child", "pid"),
)
CONFIG_CHANGED: Final = Event(
    name="config.changed",
    level=Level.INFO,
    help="A changed file is valid and was announced to the workers.",
    fields=("file_version", "needs_restart"),
)
CONFIG_KEPT: Final = Event(
    name="config.kept",
    level=Level.ERROR,
    help="A changed file is invalid; the configuration before it stays in force.",
    fields=("faults",),
)
