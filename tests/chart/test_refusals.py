"""Values that cannot work are refused, and the message names the one to change."""

from typing import Any

import pytest

from tests.chart.rendering import CASES, FEWEST, Chart, case, with_value
from tests.chart.values_file import CHART, documented_values
from tests.chart.values_schema import OWNED

BAD_VALUES: list[tuple[str, Any, str]] = [
    ("replicas", 3, "replicas"),
    ("image.pulPolicy", "Always", "pulPolicy"),
    ("image.pullPolicy", "Sometimes", "/image/pullPolicy"),
    ("image.digest", "latest", "/image/digest"),
    ("image.tag", "1 #", "/image/tag"),
    ("ingress.className", "'", "/ingress/className"),
    ("global.imageRegistri", "x", "imageRegistri"),
    ("replicaCount", "two", "/replicaCount"),
    ("replicaCount", -1, "/replicaCount"),
    ("redis.mode", "valkey", "/redis/mode"),
    ("redis.sentinel.master", "gw", "master"),
    ("redis.cluster.hosts", ["a:b:c"], "/redis/cluster/hosts/0"),
    ("redis.cacheUrl", "http://cache", "/redis/cacheUrl"),
    ("redis.username", "a@b", "/redis/username"),
    ("redis.bundled.image.tags", "7", "tags"),
    ("redis.bundled.maxMemory", "lots", "/redis/bundled/maxMemory"),
    ("redis.persistence.size", "big", "/redis/persistence/size"),
    ("containerPorts.http", 80, "/containerPorts/http"),
    ("service.type", "Nodeport", "/service/type"),
    ("service.port", 70_000, "/service/port"),
    ("ingress.hosts", [{"host": "a", "path": "/"}], "/ingress/hosts/0"),
    ("ingress.controller", "traefik", "/ingress/controller"),
    ("httpRoute.timeouts", {"request": "never"}, "/httpRoute/timeouts/request"),
    ("autoscaling.behavior", {"scaledown": {}}, "scaledown"),
    ("podDisruptionBudget.maxUnavailable", "some", "/podDisruptionBudget/maxUnavailable"),
    ("lifecycle.drainSeconds", 7200, "/lifecycle/drainSeconds"),
    ("livenessProbe.path", "/readyz", "path"),
    ("resources", {"request": {"cpu": 1}}, "request"),
    ("resources", {"requests": {"cpu": "much"}}, "/resources/requests/cpu"),
    ("tolerations", [{"effect": "NoShedule"}], "/tolerations/0/effect"),
    ("networkPolicy.operationsFrom", [{"podselector": {}}], "podselector"),
    ("prometheusRule.runbookUrlPrefix", "docs", "/prometheusRule/runbookUrlPrefix"),
    ("extraEnv", [{"name": "A", "values": "b"}], "values"),
    ("config.provider", {}, "provider"),
    ("config.providers", {"groq": {"presets": "groq"}}, "presets"),
    ("config.keys", [{"id": "a", "provider": "groq"}], "secret"),
    ("config.models", [{"provider": "a", "model": "b", "tier": "Huge"}], "/config/models/0/tier"),
    ("config.combos", [{"id": "auto", "members": [{"rout": "a/b"}]}], "/config/combos/0/members"),
    ("config.routing", {"breaker": {"treshold": 3}}, "treshold"),
    ("config.cache", {"enabled": "yes"}, "/config/cache/enabled"),
    ("config.auth", {"mode": "none"}, "/config/auth/mode"),
]
FAULTS: list[tuple[str, Any, str]] = [
    ("config.providers", {}, "config.providers: none is declared"),
    ("config.keys.0.secret", "gsk_123", "config.keys[0].secret: a credential does not belong"),
    ("config.keys.0.secret", "env:GROQ_KEY", "config.keys[0].secret: no variable GROQ_KEY is set"),
    ("config.default_combo", "${COMBO}", "config: no variable COMBO is set"),
    ("config.upstream", {"proxy": "http://u:p@proxy:3128"}, "config.upstream.proxy: seems to hold"),
    ("encryption.previousKey", "old", "encryption.previousKey: has to be another entry"),
    ("existingConfigMap", "own", "config: has no effect beside existingConfigMap"),
    ("secrets.existingSecret", "", "config.keys[0].secret: nothing is mounted there"),
    ("secrets.values", {"A": "b"}, "secrets: one source is enough, not existingSecret and values"),
    ("redis.host", "", "redis.host: say where Redis is"),
    ("redis.mode", "sentinel", "redis.sentinel: name all hosts, and masterName"),
    ("redis.mode", "cluster", "redis.cluster.hosts: name two nodes"),
    ("redis.urlKey", "url", "redis.host: redis.urlKey holds the whole address"),
    ("redis.bundled", {"enabled": True}, "redis.bundled.enabled: redis.host or redis.urlKey names"),
    ("redis.cacheUrl", "redis://:p@cache", "redis.cacheUrl: seems to hold a password"),
    ("redis.tls", {"certKey": "tls.crt"}, "redis.tls.keyKey: redis.tls.certKey and it belong"),
    ("terminationGracePeriodSeconds", 149, "terminationGracePeriodSeconds: 149 would cut answers"),
    ("lifecycle.drainSeconds", 600, ""),
    ("containerPorts.operations", 8080, "containerPorts.operations: must differ"),
    (
        "extraEnv",
        [{"name": "GW_SERVER__PORT", "value": "1"}],
        "extraEnv: set containerPorts.http in place",
    ),
    ("rollingUpdate", {"maxSurge": 0}, "rollingUpdate.maxSurge: with maxUnavailable 0"),
    ("autoscaling", {"enabled": True, "maxReplicas": 1}, "autoscaling.maxReplicas: 1 is below"),
    ("ingress.enabled", True, "ingress.hosts: name at least one host"),
    ("httpRoute.enabled", True, "httpRoute.parentRefs: name at least one gateway"),
    (
        "prometheusRule.disabled",
        ["GwNoSuch"],
        "prometheusRule.disabled: there is no alert GwNoSuch",
    ),
]


@pytest.mark.parametrize(("path", "value", "named"), BAD_VALUES)
def test_a_value_of_another_shape_is_refused_by_its_name(
    chart: Chart, path: str, value: Any, named: str
) -> None:
    fault = chart.fault(with_value(case(FEWEST), path, value))

    assert named in fault, fault


def test_no_value_may_be_of_another_kind(chart: Chart) -> None:
    values: dict[str, Any] = {}
    for value in documented_values():
        values = with_value(values, value.path, wrong_kind(value.default))

    fault = chart.fault_of_schema(values)

    paths = [f"'/{value.path.replace('.', '/')}'" for value in documented_values()]
    assert len(paths) > 150
    assert [path for path in paths if path not in fault] == []


def wrong_kind(default: Any) -> Any:
    """A value of a kind that a default has not."""
    return 7.5 if isinstance(default, dict | list) else [{"a": 1}]


@pytest.mark.parametrize(
    "section", ["config", "redis", "redis.bundled", "image", "serviceAccount.create"]
)
def test_a_section_that_is_emptied_is_missed_by_its_name(chart: Chart, section: str) -> None:
    fault = chart.fault(with_value(case(FEWEST), section, None))

    assert section.rpartition(".")[2] in fault
    assert "nil pointer" not in fault


def test_lists_may_be_emptied(chart: Chart) -> None:
    values = with_value(case(FEWEST), "image.pullSecrets", None)

    assert chart.fault(with_value(values, "global.imagePullSecrets", None)) == ""


@pytest.mark.parametrize("field", OWNED)
def test_what_the_chart_sets_is_no_part_of_the_configuration(chart: Chart, field: str) -> None:
    section, _, name = field.partition(".")

    fault = chart.fault(with_value(case(FEWEST), f"config.{section}", {name: 1}))

    assert f"'/config/{section}'" in fault
    assert name in fault


@pytest.mark.parametrize(("path", "value", "message"), FAULTS)
def test_values_that_do_not_fit_each_other_are_refused_with_what_to_change(
    chart: Chart, path: str, value: Any, message: str
) -> None:
    fault = chart.fault(with_value(case(FEWEST), path, value))

    assert message in fault
    assert bool(fault) is bool(message)
    assert "gsk_123" not in fault
    assert ":p@" not in fault


@pytest.mark.parametrize(
    "beside",
    [
        {"replicaCount": 2},
        {"replicaCount": 0},
        {"replicaCount": 1, "autoscaling": {"enabled": True}},
    ],
)
def test_an_embedded_redis_has_one_pod_only(chart: Chart, beside: dict[str, Any]) -> None:
    values = {**case(FEWEST), "redis": {"mode": "embedded"}, **beside}

    fault = chart.fault(values)

    assert "replicaCount" in fault or "autoscaling" in fault
    assert chart.fault({**values, "replicaCount": 1, "autoscaling": {}}) == ""


def test_values_without_anything_tell_all_that_is_missing(chart: Chart) -> None:
    fault = chart.fault({})

    assert "config.providers:" in fault
    assert "redis.host:" in fault


def test_the_linter_takes_the_chart_without_values_as_helm_does(chart: Chart) -> None:
    assert chart.helm.lint(CHART, strict=True)["errors"] == []


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_the_linter_of_helm_finds_nothing(chart: Chart, path: Any) -> None:
    report = chart.helm.lint(path.parents[1], case(path), strict=True)

    assert report["errors"] == []
    assert [each for each in report["messages"] if each["severity"] > 1] == []
