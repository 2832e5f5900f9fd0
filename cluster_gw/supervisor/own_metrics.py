"""What the parent itself counts."""

from collections.abc import Mapping

from cluster_gw.telemetry import catalog
from cluster_gw.telemetry.metric import Metric
from cluster_gw.telemetry.registry import Family, Sample


class OwnNumbers:
    """Counters of one group since the parent started."""

    def __init__(self) -> None:
        self.restarts: dict[str, int] = {}
        self.lost_lines = 0
        self.reloads: dict[str, int] = {"changed": 0, "kept": 0}
        self.is_file_kept = False

    def families(
        self, *, workers_wanted: int, workers_alive: int, workers_heard: int
    ) -> list[Family]:
        """Give them as metric families.

        Args:
            workers_wanted: worker processes that there should be.
            workers_alive: worker processes that live.
            workers_heard: those of them that told their own numbers just now.
        """
        return [
            _family(catalog.WORKERS, {(): workers_heard}),
            _family(catalog.LOG_LINES_DROPPED, {(): self.lost_lines}),
            _family(catalog.GROUP_WORKERS, {(): workers_alive}),
            _family(catalog.GROUP_WORKERS_WANTED, {(): workers_wanted}),
            _family(catalog.CHILD_RESTARTS, {(name,): n for name, n in self.restarts.items()}),
            _family(catalog.CONFIG_FILE_KEPT, {(): int(self.is_file_kept)}),
            _family(catalog.CONFIG_READS, {(name,): n for name, n in self.reloads.items()}),
        ]


def _family(metric: Metric, numbers: Mapping[tuple[str, ...], float]) -> Family:
    return Family(
        name=metric.name,
        type=metric.kind.value,
        help=metric.help,
        samples=[
            Sample(labels=dict(zip(metric.labels, labels, strict=True)), value=number)
            for labels, number in sorted(numbers.items())
        ],
    )
