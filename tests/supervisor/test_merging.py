"""Workers add up to one group, and no counter ever runs backwards."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from cluster_gw.supervisor.control import Readiness, SnapshotAge
from cluster_gw.supervisor.merging import MetricSum, merge_readiness, render
from cluster_gw.telemetry.catalog import CONFIG_VERSION, IN_FLIGHT
from cluster_gw.telemetry.registry import Family, Registry, Sample, Snapshot

READY = Readiness(
    status="ready",
    config_version=4,
    file_version=1,
    snapshot=SnapshotAge(version=9, age_ms=100),
    redis="ok",
)
LOST = Readiness(
    status="degraded",
    config_version=3,
    file_version=2,
    snapshot=SnapshotAge(version=8, age_ms=900),
    redis="lost",
)
STARTING = Readiness()
DRAINED = Readiness(status="draining", redis="ok")


@pytest.mark.parametrize(
    ("workers", "status"),
    [
        ([READY, READY], "ready"),
        ([READY, LOST], "degraded"),
        ([READY, STARTING], "degraded"),
        ([READY, None], "degraded"),
        ([LOST, LOST], "degraded"),
        ([STARTING, STARTING], "starting"),
        ([DRAINED, DRAINED], "draining"),
        ([DRAINED, READY], "degraded"),
        ([DRAINED, None], "starting"),
        ([STARTING, None], "starting"),
        ([None, None], "starting"),
        ([], "starting"),
    ],
)
def test_the_group_is_what_its_workers_are(workers: list[Readiness | None], status: str) -> None:
    assert merge_readiness(workers, draining=False).status == status
    assert merge_readiness(workers, draining=True).status == "draining"


def test_the_group_tells_its_oldest_version_and_its_worst_news() -> None:
    assert merge_readiness([READY, LOST, None, STARTING], draining=False) == Readiness(
        status="degraded",
        config_version=3,
        file_version=1,
        snapshot=SnapshotAge(version=8, age_ms=900),
        redis="lost",
    )


def family(value: float, kind: str = "counter", **labels: str) -> Family:
    return Family(
        name="gw_n_total", type=kind, help="n", samples=[Sample(labels=labels, value=value)]
    )


def snapshot(*families: Family) -> Snapshot:
    return Snapshot(families=list(families))


def total(families: list[Family]) -> float:
    return sum(sample.value for each in families for sample in each.samples)


def test_samples_with_the_same_labels_are_added() -> None:
    metrics = MetricSum()
    metrics.update("a", snapshot(family(1, x="1"), family(5, x="2")))
    metrics.update("b", snapshot(family(2, x="1")))

    (merged,) = metrics.families()

    assert [(s.labels, s.value) for s in merged.samples] == [({"x": "1"}, 3), ({"x": "2"}, 5)]


def test_gauges_of_a_dead_worker_end_with_it_and_counters_stay() -> None:
    metrics = MetricSum()
    metrics.update("a", snapshot(family(3, "gauge")))
    metrics.update("b", snapshot(family(4)))

    metrics.retire("a")
    metrics.retire("b")
    metrics.retire("never seen")

    assert total(metrics.families()) == 4


def test_the_version_of_the_configuration_is_the_highest_and_no_sum() -> None:
    metrics = MetricSum()
    for worker, version in (("a", 3), ("b", 4), ("c", 3)):
        registry = Registry()
        registry.put(CONFIG_VERSION, value=version)
        registry.put(IN_FLIGHT, value=1)
        metrics.update(worker, registry.snapshot())

    merged = {family.name: total([family]) for family in metrics.families()}

    assert merged[CONFIG_VERSION.name] == 4
    assert merged[IN_FLIGHT.name] == 3


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("count"), st.integers(0, 3), st.integers(0, 9)),
        st.tuples(st.just("die"), st.integers(0, 3), st.just(0)),
    ),
    max_size=40,
)


@given(STEPS)
def test_a_sum_of_counters_never_runs_backwards_and_loses_nothing(steps: list[Any]) -> None:
    metrics, lives, counts, truth = MetricSum(), [0] * 4, [0] * 4, 0
    last = 0.0
    for what, slot, amount in steps:
        name = f"{slot}.{lives[slot]}"
        if what == "count":
            counts[slot] += amount
            truth += amount
            metrics.update(name, snapshot(family(counts[slot])))
        else:
            metrics.retire(name)
            lives[slot] += 1
            counts[slot] = 0
        now = total(metrics.families())
        assert now >= last
        last = now

    assert last == truth


LABEL = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(LABEL, st.floats(allow_nan=False, allow_infinity=False))
def test_what_is_rendered_is_read_back_by_prometheus(label: str, value: float) -> None:
    text = render([family(value, "gauge", x=label)]).decode()

    (parsed,) = text_string_to_metric_families(text)
    assert [(s.labels, s.value) for s in parsed.samples] == [({"x": label}, value)]


def test_a_histogram_is_rendered_like_prometheus_wants_it() -> None:
    histogram = Family(
        name="gw_wait_seconds",
        type="histogram",
        help="line\nbreak",
        samples=[
            Sample(suffix="_bucket", labels={"le": "0.1"}, value=1),
            Sample(suffix="_bucket", labels={"le": "+Inf"}, value=2),
            Sample(suffix="_sum", labels={}, value=0.35),
            Sample(suffix="_count", labels={}, value=2),
        ],
    )

    assert render([histogram]).decode() == (
        "# HELP gw_wait_seconds line\\nbreak\n"
        "# TYPE gw_wait_seconds histogram\n"
        'gw_wait_seconds_bucket{le="0.1"} 1.0\n'
        'gw_wait_seconds_bucket{le="+Inf"} 2.0\n'
        "gw_wait_seconds_sum 0.35\n"
        "gw_wait_seconds_count 2.0\n"
    )
