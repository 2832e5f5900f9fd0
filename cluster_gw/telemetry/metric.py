"""What a metric family is."""

from enum import StrEnum

import msgspec


class MetricKind(StrEnum):
    """How samples of a family add up."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Merge(StrEnum):
    """What the samples of several workers become in the metrics of their group."""

    SUM = "sum"
    MAX = "max"


class Metric(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One metric family; declared once, so it is compared and looked up by identity."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    merge: Merge = Merge.SUM
