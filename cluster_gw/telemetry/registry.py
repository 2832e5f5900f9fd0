"""Counters of one worker: plain numbers in dictionaries, read by pull.

One loop owns a registry, so nothing is locked. A family keeps its samples under a tuple of label
values in the declared order.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from cluster_gw.telemetry.catalog import METRICS
from cluster_gw.telemetry.metric import Metric, MetricKind

MOST_WAITING: Final = 1024  # observations of a histogram that are not counted yet


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One line of an exposition; `suffix` is `_bucket`, `_sum`, `_count` or empty."""

    suffix: str = ""
    labels: dict[str, str]
    value: float


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """All samples of one metric."""

    name: str
    type: str
    help: str
    samples: list[Sample]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Every family of one worker, as `/metrics.json` carries it."""

    families: list[Family]


class Histogram:
    """Counts of buckets, and the sum.

    An observation is only put down; all that wait are counted at once, a third of the cost.

    Attributes:
        observe: adds one observation, in the metric's unit.
        waiting: what is not counted yet; who observes sees to it that it stays short.
    """

    __slots__ = ("_counts", "bounds", "observe", "total", "waiting")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.waiting: list[float] = []
        self.observe = self.waiting.append
        self.bounds = bounds
        self.total = 0.0
        self._counts = [0] * (len(bounds) + 1)

    def count(self) -> list[int]:
        """Count what waits; gives the observations of each bucket, the last above all bounds."""
        bounds, counts = self.bounds, self._counts
        for value in self.waiting:
            counts[bisect_left(bounds, value)] += 1
        self.total += sum(self.waiting)
        self.waiting.clear()
        return counts


class Registry:
    """Holds the numbers of one worker."""

    def __init__(self) -> None:
        # What never happened is told as 0 where it can be: no rise is seen from nothing.
        self._numbers: dict[Metric, dict[tuple[str, ...], float]] = {
            m: {(): 0} if m.kind is MetricKind.COUNTER and not m.labels else {}
            for m in METRICS
            if m.kind is not MetricKind.HISTOGRAM
        }
        self._histograms: dict[Metric, dict[tuple[str, ...], Histogram]] = {
            m: {} for m in METRICS if m.kind is MetricKind.HISTOGRAM
        }
        self._readers: list[Callable[[], None]] = []

    def add(self, metric: Metric, *labels: str, value: float = 1) -> None:
        """Raise a counter, or move a gauge, by `value`."""
        samples = self._numbers[metric]
        samples[labels] = samples.get(labels, 0) + value

    def put(self, metric: Metric, *labels: str, value: float) -> None:
        """Set a gauge, or a counter that is kept elsewhere."""
        self._numbers[metric][labels] = value

    def replace(self, metric: Metric, samples: Mapping[tuple[str, ...], float]) -> None:
        """Set all samples of a gauge; what is not among them is not told any more."""
        self._numbers[metric] = dict(samples)

    def observe(self, metric: Metric, *labels: str, value: float) -> None:
        """Add one observation, in the metric's unit, to a histogram."""
        histogram = self.histogram(metric, *labels)
        histogram.observe(value)
        if len(histogram.waiting) >= MOST_WAITING:
            histogram.count()

    def histogram(self, metric: Metric, *labels: str) -> Histogram:
        """The histogram of these labels, for those who keep it to observe often."""
        samples = self._histograms[metric]
        histogram = samples.get(labels)
        if histogram is None:
            histogram = samples[labels] = Histogram(metric.buckets)
        return histogram

    def on_read(self, reader: Callable[[], None]) -> None:
        """Call `reader` before each snapshot, to copy numbers that are kept elsewhere."""
        self._readers.append(reader)

    def value(self, metric: Metric, *labels: str) -> float:
        """The current number of one counter or gauge sample; 0 when it never moved."""
        return self._numbers[metric].get(labels, 0)

    def snapshot(self) -> Snapshot:
        """All families, each with its samples, in declared order."""
        for reader in self._readers:
            reader()
        return Snapshot(families=[self._family(metric) for metric in METRICS])

    def _family(self, metric: Metric) -> Family:
        samples: list[Sample] = []
        if metric.kind is MetricKind.HISTOGRAM:
            for labels, histogram in self._histograms[metric].items():
                samples.extend(_histogram_samples(_named(metric, labels), histogram))
        else:
            samples.extend(
                Sample(labels=_named(metric, labels), value=value)
                for labels, value in self._numbers[metric].items()
            )
        return Family(name=metric.name, type=metric.kind.value, help=metric.help, samples=samples)


def _named(metric: Metric, labels: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(metric.labels, labels, strict=True))


def _histogram_samples(labels: dict[str, str], histogram: Histogram) -> list[Sample]:
    samples: list[Sample] = []
    running = 0
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.count(), strict=True):
        running += count
        le = "+Inf" if bound == float("inf") else repr(float(bound))
        samples.append(Sample(suffix="_bucket", labels={**labels, "le": le}, value=running))
    samples.append(Sample(suffix="_sum", labels=labels, value=histogram.total))
    samples.append(Sample(suffix="_count", labels=labels, value=running))
    return samples
