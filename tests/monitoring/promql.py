"""What an expression of alerts and dashboard asks for: metrics, labels and their values."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from ruamel.yaml import YAML

from cluster_gw.telemetry.catalog import METRICS
from cluster_gw.telemetry.metric import Metric, MetricKind
from tests.architecture.source_tree import ROOT

FILES: Final = ROOT / "helm/cluster-gw/files"
SCRAPED: Final = frozenset({"namespace", "job", "instance"})
"""Labels that Prometheus itself puts on what it reads."""
SELECTED: Final = re.compile(r"\b(gw_[a-z0-9_]+)(?:\{([^}]*)\})?")
MATCHER: Final = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
GROUPED: Final = re.compile(r"\b(?:by|on) \(([^)]*)\)")
SUFFIX: Final = re.compile(r"_(?:bucket|sum|count)$")
BY_NAME: Final = {metric.name: metric for metric in METRICS}


class Selector(NamedTuple):
    """One metric of an expression, and what its labels must be."""

    name: str
    matchers: tuple[tuple[str, str, str], ...]


class Rule(NamedTuple):
    """One alert."""

    name: str
    expr: str
    wait: str
    severity: str
    annotations: dict[str, str]


def selectors(expr: str) -> list[Selector]:
    """Every metric that an expression names."""
    return [
        Selector(name, tuple(MATCHER.findall(inner or "")))
        for name, inner in SELECTED.findall(expr)
    ]


def grouping(expr: str) -> set[str]:
    """Every label that an expression groups or joins by."""
    return {label.strip() for inner in GROUPED.findall(expr) for label in inner.split(",")}


def metric_of(name: str) -> Metric | None:
    """The declared metric that a name belongs to; None where there is none."""
    found = BY_NAME.get(name)
    if found is None and SUFFIX.search(name):
        found = BY_NAME.get(SUFFIX.sub("", name))
        return found if found is not None and found.kind is MetricKind.HISTOGRAM else None
    return None if found is not None and found.kind is MetricKind.HISTOGRAM else found


def labels_of(name: str) -> set[str]:
    """Labels that a sample of this name has when Prometheus has read it."""
    metric = metric_of(name)
    assert metric is not None, name
    return {*metric.labels, *SCRAPED, *(("le",) if name.endswith("_bucket") else ())}


@cache
def rules() -> tuple[Rule, ...]:
    """Every alert, in order."""
    document = YAML(typ="safe").load(FILES / "alerts.yaml")
    return tuple(
        Rule(
            rule["alert"],
            rule["expr"],
            rule.get("for", "0m"),
            rule["labels"]["severity"],
            dict(rule["annotations"]),
        )
        for group in document["groups"]
        for rule in group["rules"]
    )


@cache
def dashboard() -> dict[str, Any]:
    """The dashboard."""
    document: dict[str, Any] = json.loads((FILES / "dashboard.json").read_text())
    return document


def panels() -> Iterator[dict[str, Any]]:
    """Every panel that asks for something."""
    return (panel for panel in dashboard()["panels"] if panel["type"] != "row")


def asked() -> dict[str, str]:
    """Every expression, by where it stands."""
    told = {rule.name: rule.expr for rule in rules()}
    for panel in panels():
        for target in panel["targets"]:
            told[f"{panel['title']} {target['refId']}"] = target["expr"]
    return told
