"""Every file of `ci/` renders to objects that a cluster and the gateway accept."""

import copy
import functools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from cluster_gw.settings.environment import places
from cluster_gw.settings.loading import PATH_VARIABLE, ROOT, load_bytes
from cluster_gw.settings.master_key import PREVIOUS as PREVIOUS_MASTER_KEY
from cluster_gw.settings.master_key import VARIABLE as MASTER_KEY
from cluster_gw.supervisor.admin_door import SHORTEST_TOKEN, TOKEN_VARIABLE
from cluster_gw.supervisor.group import EMBEDDED_GRACE_S, GRACE_S
from cluster_gw.supervisor.operations import LIVEZ
from tests.chart.golden import FOLDER, WRITTEN, text_of
from tests.chart.own_resources import OBJECTS
from tests.chart.rendering import CASES, RELEASE, Chart, Objects, case, needed
from tests.chart.values_file import CHART, read_yaml

NAMES = [path.name.removesuffix("-values.yaml") for path in CASES]
SECRETS = {
    **dict.fromkeys(("GROQ_KEY_A", "RELAY_KEY_A", "redis-password"), "made-up"),
    "sentinel-password": "made-up",
    "LOCAL_KEY": "made-up",
    "DEMO_SHA256": "ab" * 32,
    "redis-url": "rediss://user:made-up@redis:6380/1",
    "cache-url": "redis://:made-up@cache:6379/0",
    "admin-token": "t" * SHORTEST_TOKEN,
    "APP_A_SHA256": "ab" * 32,
    "master-key": "cd" * 32,
    "previous-master-key": "ef" * 32,
}
FILES = {
    f"/etc/cluster-gw/{folder}/{name}": SECRETS[name].encode()
    for folder, name in (
        ("secrets", "GROQ_KEY_A"),
        ("secrets", "RELAY_KEY_A"),
        ("encryption", "master-key"),
        ("encryption", "previous-master-key"),
    )
}
NOT_OURS = {"beside", "before"}


@functools.cache
def fault_of(text: str, version: str) -> str:
    """What a cluster of a version says to an object; empty if it takes it."""
    item = json.loads(text)
    shape = OBJECTS.get(f"{item['apiVersion']}/{item['kind']}")
    if shape is not None:
        errors = needed("jsonschema").Draft202012Validator(shape).iter_errors(item["spec"])
        return "; ".join(f"{error.json_path}: {error.message}" for error in errors)
    validator = needed("kubernetes_validate")
    try:
        validator.validate(item, version, strict=True)
    except validator.ValidationError as error:
        return f"{list(error.path)}: {error.message}"
    return ""


@functools.cache
def versions() -> tuple[str, str]:
    """The oldest and the newest version of Kubernetes that is known."""
    found = needed("kubernetes_validate.utils").all_versions()
    return found[0], found[-1]


@pytest.mark.parametrize("name", NAMES)
def test_a_cluster_of_the_oldest_and_the_newest_version_takes_every_object(
    rendered: dict[str, Objects], name: str
) -> None:
    faults = [
        f"{item['kind']}/{item['metadata']['name']} on {version}: {fault}"
        for item in rendered[name].all
        for version in versions()
        if (fault := fault_of(json.dumps(item, sort_keys=True), version))
    ]

    assert faults == []


def test_the_check_of_objects_finds_a_field_that_is_misspelt(
    rendered: dict[str, Objects],
) -> None:
    broken = copy.deepcopy(rendered["default"].one("Deployment"))
    broken["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerport"] = 1
    route = copy.deepcopy(rendered["gateway-api"].one("HTTPRoute"))
    route["spec"]["rules"][0]["backendRef"] = []

    assert "containerport" in fault_of(json.dumps(broken), versions()[1])
    assert "backendRef" in fault_of(json.dumps(route), versions()[1])


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_rendered_is_what_was_looked_at(rendered: dict[str, Objects], name: str) -> None:
    assert text_of(rendered[name]) == (FOLDER / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"existing-config"}))
def test_the_gateway_accepts_the_rendered_configuration_in_the_rendered_environment(
    rendered: dict[str, Objects], name: str
) -> None:
    objects = rendered[name]
    text = objects.one("ConfigMap", f"{case_name(objects)}")["data"]["cluster-gw.yaml"]
    environment = {**objects.environment(SECRETS), "LOG_FORM": "json"}

    loaded = load_bytes(text.encode(), environment, files=FILES)

    settings = loaded.settings
    ports = {port["name"]: port["containerPort"] for port in objects.gateway["ports"]}
    assert loaded.warnings == ()
    assert ports == {"http": settings.server.port, "operations": settings.server.admin_port}
    assert settings.server.host == settings.server.admin_host == "0.0.0.0"
    assert (settings.redis.url.reveal() == "embedded:") is (name == "embedded")
    assert "$(" not in settings.redis.url.reveal()
    encryption = case(CHART / f"ci/{name}-values.yaml").get("encryption", {})
    entries = [encryption and "master-key", encryption.get("previousKey")]
    assert [key.reveal() for key in loaded.master_keys] == [SECRETS[one] for one in entries if one]


def case_name(objects: Objects) -> str:
    """The name of the Deployment, which its ConfigMap has, too."""
    found: str = objects.one("Deployment")["metadata"]["name"]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_no_variable_is_invented(rendered: dict[str, Objects], name: str) -> None:
    known = {*places(ROOT), PATH_VARIABLE, TOKEN_VARIABLE, MASTER_KEY, PREVIOUS_MASTER_KEY}
    env = rendered[name].gateway["env"]
    text = json.dumps([item.get("value", "") for item in env])
    config = [item["data"].get("cluster-gw.yaml", "") for item in rendered[name].of("ConfigMap")]
    used = {
        item["name"]
        for item in env
        if f"$({item['name']})" in text or f"${{{item['name']}}}" in "".join(config)
    }

    assert {item["name"] for item in env} - known - used == set()


@pytest.mark.parametrize("name", NAMES)
def test_what_a_pod_names_is_there(rendered: dict[str, Objects], name: str) -> None:
    objects = rendered[name]
    made = {(item["kind"], item["metadata"]["name"]) for item in objects.all}
    made |= {("Secret", item["spec"]["target"]["name"]) for item in objects.of("ExternalSecret")}
    given = json.dumps(case(CHART / f"ci/{name}-values.yaml"))
    missing = [
        f"{owner}: {kind} {wanted}"
        for owner, pod in objects.pods
        for kind, wanted in references(pod)
        if (kind, wanted) not in made and json.dumps(wanted) not in given
    ]

    assert missing == []


def references(node: Any) -> list[tuple[str, str]]:
    """Secrets, ConfigMaps and claims that a description of a pod names."""
    if isinstance(node, list):
        return [found for item in node for found in references(item)]
    if not isinstance(node, dict):
        return []
    kinds = {"secretKeyRef": "Secret", "secretRef": "Secret", "configMapRef": "ConfigMap"}
    found = [(kind, node[field]["name"]) for field, kind in kinds.items() if field in node]
    if isinstance(node.get("secret"), dict):
        found.append(("Secret", node["secret"]["secretName"]))
    if isinstance(node.get("configMap"), dict):
        found.append(("ConfigMap", node["configMap"]["name"]))
    if isinstance(node.get("persistentVolumeClaim"), dict):
        found.append(("PersistentVolumeClaim", node["persistentVolumeClaim"]["claimName"]))
    return found + [each for value in node.values() for each in references(value)]


@pytest.mark.parametrize("name", NAMES)
def test_selectors_and_ports_meet(rendered: dict[str, Objects], name: str) -> None:
    objects = rendered[name]
    makers = [*objects.of("Deployment"), *objects.of("StatefulSet")]
    templates = [maker["spec"]["template"] for maker in makers]
    for maker in makers:
        wanted, labels = maker["spec"]["selector"]["matchLabels"], maker["spec"]["template"]
        assert wanted.items() <= labels["metadata"]["labels"].items()
    for service in objects.of("Service"):
        (template,) = (
            each
            for each in templates
            if service["spec"]["selector"].items() <= each["metadata"]["labels"].items()
        )
        names = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= names
    for policy in objects.of("NetworkPolicy"):
        wanted = policy["spec"]["podSelector"]["matchLabels"]
        (template,) = (t for t in templates if wanted.items() <= t["metadata"]["labels"].items())
        opened = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
        real = {port["containerPort"] for port in template["spec"]["containers"][0]["ports"]}
        assert opened == real
    for monitor in objects.of("ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"]
        (service,) = (
            s for s in objects.of("Service") if wanted.items() <= s["metadata"]["labels"].items()
        )
        assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]


@pytest.mark.parametrize("name", NAMES)
def test_every_pod_is_bounded(rendered: dict[str, Objects], name: str) -> None:
    for owner, pod in rendered[name].pods:
        assert pod["automountServiceAccountToken"] is False, owner
        assert pod["securityContext"]["runAsNonRoot"] is True, owner
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, owner
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        for container in pod["containers"]:
            if container["name"] in NOT_OURS:
                continue
            bounds = container["securityContext"]
            assert bounds["readOnlyRootFilesystem"] is True, owner
            assert bounds["allowPrivilegeEscalation"] is False, owner
            assert bounds["capabilities"] == {"drop": ["ALL"]}, owner
            assert {"requests", "limits"} <= container["resources"].keys(), owner
            mounts = {mount["name"] for mount in container.get("volumeMounts", [])}
            kept = {"data"} if owner.startswith("StatefulSet") else set()
            assert mounts <= volumes | kept, owner


@pytest.mark.parametrize("name", NAMES)
def test_probes_ask_the_operations_port_and_ends_outlast_the_longest_drain(
    rendered: dict[str, Objects], name: str
) -> None:
    objects = rendered[name]
    deployment, container = objects.one("Deployment"), objects.gateway
    looks = {each: container[each]["httpGet"] for each in ("startupProbe", "livenessProbe")}
    grace_s = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    pause_s = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    drain_s = int(objects.environment(SECRETS)["GW_SERVER__DRAIN_S"])
    own_s = GRACE_S + (EMBEDDED_GRACE_S if name == "embedded" else 0)

    assert all(look == {"path": LIVEZ[0], "port": "operations"} for look in looks.values())
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "operations"}
    assert all(container[look]["timeoutSeconds"] >= 3 for look in looks)
    assert grace_s > pause_s + drain_s + own_s


def test_the_number_of_pods_has_one_owner(rendered: dict[str, Objects]) -> None:
    scaled, fixed = rendered["full"], rendered["default"]

    assert "replicas" not in scaled.one("Deployment")["spec"]
    assert scaled.one("HorizontalPodAutoscaler")["spec"]["behavior"]["scaleDown"]
    assert fixed.one("Deployment")["spec"]["replicas"] == 2
    assert fixed.of("HorizontalPodAutoscaler") == []


def test_a_single_pod_is_not_held_on_to_and_several_are_spread(
    rendered: dict[str, Objects],
) -> None:
    alone, several = rendered["embedded"], rendered["default"]

    assert alone.of("PodDisruptionBudget") == []
    assert alone.one("Deployment")["spec"]["strategy"] == {"type": "Recreate"}
    assert several.one("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert (
        len(several.one("Deployment")["spec"]["template"]["spec"]["topologySpreadConstraints"]) == 2
    )


def test_egress_names_the_ports_of_redis_and_of_every_provider(
    rendered: dict[str, Objects],
) -> None:
    def ports(name: str) -> list[list[int]]:
        rules = rendered[name].one("NetworkPolicy", case_name(rendered[name]))["spec"]["egress"]
        return [[port["port"] for port in rule["ports"]] for rule in rules]

    assert ports("full") == [[53, 53], [6379], [443, 8443, 8444, 9001], [4318]]
    assert "to" not in rendered["full"].one("NetworkPolicy", "llm")["spec"]["egress"][1]
    assert ports("sentinel") == [[53, 53], [26379, 6379], [443]]
    assert ports("cluster") == [[53, 53], [6379, 6380], [443]]


def test_the_checksum_follows_the_configuration_and_nothing_else(chart: Chart) -> None:
    values = case(CHART / "ci/default-values.yaml")
    more = {**values, "config": {**values["config"], "cache": {"enabled": True}}}

    def checksum(given: dict[str, Any], **beside: Any) -> str:
        template = chart.render({**given, **beside}).one("Deployment")["spec"]["template"]
        found: str = template["metadata"]["annotations"]["checksum/config"]
        return found

    assert checksum(values) == checksum(values, replicaCount=5)
    assert checksum(values) != checksum(more)
    assert checksum(values, configChange="live") == checksum(more, configChange="live")


def test_sentinels_may_want_a_password_where_the_master_wants_none(chart: Chart) -> None:
    values = case(CHART / "ci/sentinel-values.yaml")
    values["redis"] |= {"passwordKey": "", "username": ""}

    environment = chart.render(values).environment(SECRETS)

    assert "REDIS_PASSWORD" not in environment
    assert environment["GW_REDIS__URL"].startswith("redis+sentinel://sentinel-0.redis:26379,")
    assert environment["GW_REDIS__URL"].endswith("?sentinel_user=gateway&sentinel_password=made-up")


def test_the_ports_of_a_collector_and_of_all_caches_are_open(chart: Chart) -> None:
    values = case(CHART / "ci/cluster-values.yaml")
    values["config"]["telemetry"] = {"otlp_endpoint": "http://collector.monitoring:4318"}
    values["redis"]["cacheUrl"] = "redis+sentinel://a:26380,b:26381,c/cache"

    rules = chart.render(values).one("NetworkPolicy")["spec"]["egress"]

    assert [port["port"] for port in rules[1]["ports"]] == [26380, 26381, 6379]
    assert [port["port"] for port in rules[2]["ports"]] == [4318, 443]


def test_a_new_version_of_the_chart_alone_replaces_no_pod_of_redis(
    chart: Chart, tmp_path: Path
) -> None:
    values = case(CHART / "ci/bundled-redis-values.yaml")
    shutil.copytree(CHART, tmp_path / "chart")
    described = tmp_path / "chart/Chart.yaml"
    described.write_text(re.sub(r"(?m)ersion: [0-9.]+$", "ersion: 9.9.9", described.read_text()))
    later = Chart(tmp_path / "chart")

    before, after = (each.render(values).one("StatefulSet") for each in (chart, later))
    later.close()

    assert before["metadata"]["labels"] != after["metadata"]["labels"]
    assert before["spec"] == after["spec"]


def test_alerts_are_those_of_the_file_but_what_is_left_out(rendered: dict[str, Objects]) -> None:
    written = read_yaml((CHART / "files/alerts.yaml").read_text("utf-8"))["groups"]
    names = [rule["alert"] for group in written for rule in group["rules"]]
    groups = rendered["full"].one("PrometheusRule")["spec"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]

    assert [rule["alert"] for rule in rules] == [name for name in names if name != "GwDrainsLong"]
    assert {rule["labels"]["team"] for rule in rules} == {"platform"}
    start = "https://git.example.com/cluster-gw/blob/main/docs/runbook.md#"
    assert all(rule["annotations"]["runbook_url"].startswith(start) for rule in rules)


def test_the_dashboard_is_the_file(rendered: dict[str, Objects]) -> None:
    given = rendered["full"].one("ConfigMap", "-dashboard")["data"]["cluster-gw.json"]

    assert json.loads(given) == json.loads((CHART / "files/dashboard.json").read_text("utf-8"))


def test_notes_name_what_is_there_and_what_is_missing(chart: Chart) -> None:
    values = case(CHART / "ci/default-values.yaml")
    without = {**values, "config": {**values["config"], "clients": []}}

    assert f"helm test {RELEASE}" in chart.render(values).notes
    assert "NOTE" not in chart.render(values).notes
    assert "config.clients is empty" in chart.render(without).notes
