"""Alerts and dashboard ask for what there is: declared metrics, their labels, values these have."""

import re

import pytest

from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.outcome.error_codes import ERROR_CODES
from cluster_gw.core.outcome.failure_codes import FailureCode
from cluster_gw.core.outcome.trace import AttemptOutcome
from cluster_gw.telemetry.catalog import METRICS
from tests.monitoring.promql import (
    asked,
    dashboard,
    grouping,
    labels_of,
    metric_of,
    panels,
    rules,
    selectors,
)

LIMITS = {"rpm", "rpd", "tpm", "tpd", "concurrency"}
VALUES = {
    "outcome": {*FailureCode, *AttemptOutcome},
    "code": set(ERROR_CODES),
    "state": {*Gate, "ok", "half_open"},
    "gate": {*Gate},
    "limit": LIMITS,
    "result": {"unavailable"},
    "status": {"200", "429", "500", "503"},
}
FOR_SEARCHES = {
    "is seen better in another one": "gw_alive_workers_count gw_keys_barred_count "
    "gw_config_reads_total gw_config_reloads_total gw_cache_store_total gw_route_samples_count",
    "says more of what an alert told": "gw_alone_grants_total gw_alone_refusals_total "
    "gw_journal_replayed_total gw_events_total gw_events_reconnects_total gw_key_checks_total "
    "gw_cooldowns_lifted_total gw_snapshots_built_total gw_snapshots_refused_total "
    "gw_ordered_passes_total gw_outside_use_total "
    "gw_models_toolless_count gw_log_lines_suppressed_total gw_spans_exported_total",
    "is no trouble of anybody": "gw_bonds_unread_total gw_bonds_unwritten_total "
    "gw_client_share_refusals_total gw_estimate_lessons_lost_total gw_estimate_pairs_count "
    "gw_request_records_total gw_session_memory_total gw_usage_dropped_total",
}
"""What neither alerts nor dashboard show, by why."""
EXPRESSIONS = asked()


@pytest.mark.parametrize("place", EXPRESSIONS)
def test_an_expression_asks_for_declared_metrics_by_labels_they_have(place: str) -> None:
    expr = EXPRESSIONS[place]
    found = selectors(expr)

    assert found
    assert [one.name for one in found if metric_of(one.name) is None] == []
    there = {label for one in found for label in labels_of(one.name)}
    assert grouping(expr) <= there
    for one in found:
        assert {label for label, _, _ in one.matchers} <= labels_of(one.name)


@pytest.mark.parametrize("place", EXPRESSIONS)
def test_an_expression_asks_for_values_that_there_are(place: str) -> None:
    for one in selectors(EXPRESSIONS[place]):
        for label, how, text in one.matchers:
            if label not in VALUES:
                continue
            words = [text] if how in {"=", "!="} else text.split("|")
            lacking = [w for w in words if not any(re.fullmatch(w, str(v)) for v in VALUES[label])]
            assert lacking == []


def test_every_alert_says_what_it_is_and_where_its_entry_stands() -> None:
    names = [rule.name for rule in rules()]

    assert len(set(names)) == len(names)
    for rule in rules():
        assert re.fullmatch(r"Gw[A-Z]\w+", rule.name)
        assert rule.severity in {"critical", "warning", "info"}
        assert rule.annotations["summary"].endswith(".")
        assert rule.annotations["runbook_url"] == f"docs/runbook.md#{rule.name.lower()}"


def test_panels_have_titles_places_and_numbers_of_their_own() -> None:
    shown = list(panels())
    places = {(p["gridPos"]["x"], p["gridPos"]["y"]) for p in shown}

    assert len({panel["title"] for panel in shown}) == len(shown) == len(places)
    assert len({panel["id"] for panel in dashboard()["panels"]}) == len(dashboard()["panels"])
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in shown)
    assert all(
        "$namespace" in t["expr"] and "$job" in t["expr"] for p in shown for t in p["targets"]
    )


def test_what_is_declared_is_looked_at_or_left_to_whoever_searches() -> None:
    looked_at = {metric_of(one.name) for expr in EXPRESSIONS.values() for one in selectors(expr)}
    others = {metric.name for metric in METRICS if metric not in looked_at}

    assert others == {name for names in FOR_SEARCHES.values() for name in names.split()}
