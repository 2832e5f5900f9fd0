"""Every declared metric has a proper name and can be read back by Prometheus' own parser."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cluster_gw.supervisor.merging import render
from cluster_gw.telemetry.catalog import METRICS
from cluster_gw.telemetry.metric import Metric, MetricKind
from cluster_gw.telemetry.registry import Registry

NAME = re.compile(r"gw(_[a-z0-9]+)+")
UNITS = ("_seconds", "_bytes", "_tokens", "_count", "_ratio", "_usd")
AWKWARD = 'a"b\\c\nd é'  # everything the format has to escape, and what it must not


def page_of(metric: Metric) -> str:
    """The page of a worker in which one metric has moved once."""
    registry = Registry()
    labels = [AWKWARD for _ in metric.labels]
    if metric.kind is MetricKind.HISTOGRAM:
        registry.observe(metric, *labels, value=0.25)
    else:
        registry.put(metric, *labels, value=3)
    return render(registry.snapshot().families).decode()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_metric_is_read_back_as_it_was_written(metric: Metric) -> None:
    families = {family.name: family for family in text_string_to_metric_families(page_of(metric))}

    family = families[metric.name.removesuffix("_total")]
    samples = {sample.name: sample for sample in family.samples}
    is_histogram = metric.kind is MetricKind.HISTOGRAM
    sample = samples[f"{metric.name}_sum" if is_histogram else metric.name]
    assert family.type == metric.kind.value
    assert sample.value == (0.25 if is_histogram else 3)
    assert sample.labels == dict.fromkeys(metric.labels, AWKWARD)


def test_names_tell_what_is_counted_and_in_which_unit() -> None:
    wrong = [
        metric.name
        for metric in METRICS
        if not NAME.fullmatch(metric.name)
        or metric.name.endswith("_total") != (metric.kind is MetricKind.COUNTER)
        or (metric.kind is not MetricKind.COUNTER and not metric.name.endswith(UNITS))
    ]

    assert wrong == []
    assert len({metric.name for metric in METRICS}) == len(METRICS)
