"""What the parent itself counts."""

from cluster_gw.telemetry.catalog import LOG_LINES_DROPPED, WORKERS
from cluster_gw.telemetry.registry import Family, Sample


class OwnNumbers:
    """Counters of one group since the parent started."""

    def __init__(self) -> None:
        self.restarts: dict[str, int] = {}
        self.lost_lines = 0
        self.reloads: dict[str, int] = {"changed": 0, "kept": 0}

    def families(self, *, workers_alive: int, workers_heard: int) -> list[Family]:
        """Give them as metric families.

        Args:
            workers_alive: worker processes that live.
            workers_heard: those of them that told their own numbers just now.
        """
        return [
            Family(
                name=WORKERS.name,
                type=WORKERS.kind.value,
                help=WORKERS.help,
                samples=[Sample(labels={}, value=workers_heard)],
            ),
            Family(
                name=LOG_LINES_DROPPED.name,
                type=LOG_LINES_DROPPED.kind.value,
                help=LOG_LINES_DROPPED.help,
                samples=[Sample(labels={}, value=self.lost_lines)],
            ),
            Family(
                name="gw_group_workers_count",
                type="gauge",
                help="Worker processes of this group that live.",
                samples=[Sample(labels={}, value=workers_alive)],
            ),
            Family(
                name="gw_child_restarts_total",
                type="counter",
                help="Processes that ended by themselves and were started again.",
                samples=[
                    Sample(labels={"child": name}, value=count)
                    for name, count in sorted(self.restarts.items())
                ],
            ),
            Family(
                name="gw_config_reads_total",
                type="counter",
                help="Changed configurations by what became of them.",
                samples=[
                    Sample(labels={"result": name}, value=count)
                    for name, count in self.reloads.items()
                ],
            ),
        ]
