import pytest

from cluster_gw.telemetry.catalog import (
    METRICS,
    REQUEST_SECONDS,
    REQUESTS,
    WORKERS,
)
from cluster_gw.telemetry.metric import MetricKind
from cluster_gw.telemetry.registry import MOST_WAITING, Registry


def family(registry: Registry, name: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    for found in registry.snapshot().families:
        if found.name == name:
            return {(s.suffix, tuple(sorted(s.labels.items()))): s.value for s in found.samples}
    raise AssertionError(name)


def test_a_counter_adds_up_under_its_labels() -> None:
    registry = Registry()
    registry.add(REQUESTS, "auto", "200")
    registry.add(REQUESTS, "auto", "200", value=2)
    registry.add(REQUESTS, "auto", "502")

    samples = family(registry, "gw_requests_total")

    assert samples["", (("combo", "auto"), ("status", "200"))] == 3
    assert samples["", (("combo", "auto"), ("status", "502"))] == 1


def test_histogram_buckets_are_cumulative_and_end_with_everything() -> None:
    registry = Registry()
    for value in (0.005, 0.006, 1000.0):
        registry.observe(REQUEST_SECONDS, "stream", value=value)

    samples = family(registry, "gw_request_seconds")

    assert samples["_bucket", (("le", "0.005"), ("mode", "stream"))] == 1
    assert samples["_bucket", (("le", "0.01"), ("mode", "stream"))] == 2
    assert samples["_bucket", (("le", "+Inf"), ("mode", "stream"))] == 3
    assert samples["_count", (("mode", "stream"),)] == 3
    assert samples["_sum", (("mode", "stream"),)] == pytest.approx(1000.011)


def test_observations_beyond_what_may_wait_are_counted_at_once() -> None:
    registry = Registry()
    for _ in range(MOST_WAITING + 5):
        registry.observe(REQUEST_SECONDS, "stream", value=0.006)

    assert len(registry.histogram(REQUEST_SECONDS, "stream").waiting) == 5
    assert family(registry, "gw_request_seconds")["_count", (("mode", "stream"),)] == (
        MOST_WAITING + 5
    )


def test_readers_run_before_a_snapshot() -> None:
    registry = Registry()
    registry.on_read(lambda: registry.put(WORKERS, value=4))

    assert family(registry, "gw_workers_count")["", ()] == 4


def test_a_wrong_number_of_labels_is_refused() -> None:
    registry = Registry()
    registry.add(REQUESTS, "only-one")

    with pytest.raises(ValueError, match="zip"):
        registry.snapshot()


def test_metric_names_end_with_their_unit() -> None:
    for metric in METRICS:
        assert metric.name.startswith("gw_")
        assert metric.name.endswith("_total") == (metric.kind is MetricKind.COUNTER)
        unit = metric.name.removesuffix("_total").rsplit("_", 1)[-1]
        if metric.kind is not MetricKind.COUNTER:
            assert unit in {"seconds", "count", "bytes", "ratio"}


def test_metric_names_are_unique() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
