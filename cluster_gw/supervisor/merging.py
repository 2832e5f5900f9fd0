"""The numbers of all workers become one: readiness, and metrics that never run backwards."""

from collections.abc import Iterable, Iterator, Sequence
from operator import add
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

from cluster_gw.supervisor.control import Readiness, SnapshotAge
from cluster_gw.telemetry.catalog import METRICS
from cluster_gw.telemetry.metric import Merge
from cluster_gw.telemetry.registry import Family, Sample, Snapshot

GAUGE: Final = "gauge"
COUNTER: Final = "counter"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

GREATEST: Final = frozenset(metric.name for metric in METRICS if metric.merge is Merge.MAX)

Labels = tuple[tuple[str, str], ...]
Status = Literal["ready", "degraded", "starting", "draining"]


def merge_readiness(workers: Sequence[Readiness | None], *, draining: bool) -> Readiness:
    """Say what the group is: ready when every worker is, degraded when some are.

    Args:
        workers: one per worker; None did not answer.
        draining: whether the group is ending; it is also when all its workers are drained.
    """
    heard = [worker for worker in workers if worker is not None]
    serving = [worker for worker in heard if worker.status in {"ready", "degraded"}]
    known = serving or heard
    ages = [w.snapshot.age_ms for w in known if w.snapshot.age_ms is not None]
    return Readiness(
        status=_status(workers, serving, draining=draining),
        config_version=min((w.config_version for w in known), default=0),
        file_version=min((w.file_version for w in known), default=0),
        snapshot=SnapshotAge(
            version=min((w.snapshot.version for w in known), default=0),
            age_ms=max(ages, default=None),
        ),
        redis="ok" if known and all(w.redis == "ok" for w in known) else "lost",
    )


def _status(
    workers: Sequence[Readiness | None], serving: Sequence[Readiness], *, draining: bool
) -> Status:
    is_drained = bool(workers) and all(w is not None and w.status == "draining" for w in workers)
    if draining or is_drained:
        return "draining"
    if not serving:
        return "starting"
    whole = len(serving) == len(workers) and all(w.status == "ready" for w in serving)
    return "ready" if whole else "degraded"


class MetricSum:
    """Adds up the metrics of workers over their restarts.

    A counter of a worker that ended is kept, and one that does not answer counts as it last did:
    a sum that ran backwards would look to Prometheus like a restart of everything.
    """

    def __init__(self) -> None:
        self._last: dict[str, Snapshot] = {}
        self._ended: list[Family] = []

    def update(self, worker: str, snapshot: Snapshot) -> None:
        """Note what a worker says now.

        Args:
            worker: names one life of one process.
            snapshot: its metrics.
        """
        self._last[worker] = snapshot

    def retire(self, worker: str) -> None:
        """Keep the counters of a worker that ended; its gauges end with it."""
        snapshot = self._last.pop(worker, None)
        if snapshot is not None:
            counted = [family for family in snapshot.families if family.type != GAUGE]
            self._ended = _add([*self._ended, *counted])

    def families(self, own: Iterable[Family] = ()) -> list[Family]:
        """Give every family, merged over workers past and present as the catalogue says.

        Args:
            own: further families, of the parent itself.
        """
        now = [family for snapshot in self._last.values() for family in snapshot.families]
        return _add([*self._ended, *now, *own])


def _add(families: Iterable[Family]) -> list[Family]:
    firsts: dict[str, Family] = {}
    sums: dict[str, dict[tuple[str, Labels], float]] = {}
    for family in families:
        firsts.setdefault(family.name, family)
        samples = sums.setdefault(family.name, {})
        merge = max if family.name in GREATEST else add
        for sample in family.samples:
            key = (sample.suffix, tuple(sample.labels.items()))
            before = samples.get(key)
            samples[key] = sample.value if before is None else merge(before, sample.value)
    return [
        Family(
            name=name,
            type=first.type,
            help=first.help,
            samples=[
                Sample(suffix=suffix, labels=dict(labels), value=value)
                for (suffix, labels), value in sums[name].items()
            ],
        )
        for name, first in firsts.items()
    ]


class _Page(Collector):
    """Hands families to the exposition library as they are."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Give each family under the name the library expects, counters without their suffix."""
        for family in self._families:
            is_counter = family.type == COUNTER
            name = family.name.removesuffix("_total") if is_counter else family.name
            metric = Metric(name, family.help, family.type)
            for sample in family.samples:
                metric.add_sample(family.name + sample.suffix, sample.labels, sample.value)
            yield metric


def render(families: Iterable[Family]) -> bytes:
    """Write families in the Prometheus text format, version 0.0.4."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Page(families))
    return generate_latest(registry)
