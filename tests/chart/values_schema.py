"""`values.schema.json` of the chart, made of `values.yaml` and of the settings of the gateway.

`python -m tests.chart.values_schema` writes it and the chart's README; a test compares them. A
default tells the type of its value; what it cannot tell stands in `SHAPES`.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import inspect

from cluster_gw.settings.pool import Settings
from tests.chart.page import write_page
from tests.chart.values_file import CHART, default_values, documented_values

SCHEMA: Final = CHART / "values.schema.json"
REFERENCE: Final = r"\$\{"
OWNED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "server.host": "bindAddress",
        "server.port": "containerPorts.http",
        "server.admin_host": "bindAddress",
        "server.admin_port": "containerPorts.operations",
        "server.drain_s": "lifecycle.drainSeconds",
        "redis.url": "redis",
        "redis.data_dir": "redis.persistence",
        "redis.cache_url": "redis.cacheUrl",
    }
)
"""Fields of the configuration that the chart sets, with the value that does."""


def _one_of(*names: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(names)}


def _text(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern}


def _whole(low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high}


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _record(required: tuple[str, ...] = (), **fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": fields,
        "required": list(required),
    }


ANY: Final[Mapping[str, Any]] = MappingProxyType({"type": "object"})
TEXT: Final[Mapping[str, Any]] = MappingProxyType({"type": "string"})
TEXTS: Final[Mapping[str, Any]] = MappingProxyType(
    {"type": "object", "additionalProperties": {"type": "string"}}
)
NAME: Final = _text(r"^$|^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")
ENTRY: Final = _text(r"^$|^[A-Za-z0-9._-]{1,253}$")
HOST: Final = _text(r"^$|^[A-Za-z0-9_.:-]{1,253}$")
ADDRESS: Final = _text(r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:[0-9]{1,5})?$")
USER: Final = _text(r"^([A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})*$")
QUANTITY: Final = _text(r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$")
DURATION: Final = _text(r"^([0-9]{1,5}(h|m|s|ms)){1,4}$")
PORT: Final = _whole(1, 65_535)
PULLS: Final = _one_of("Always", "IfNotPresent", "Never")
PLACE: Final = _text(r"^$|^[A-Za-z0-9][A-Za-z0-9._:/-]*$")
TAG: Final = _text(r"^$|^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$")
DIGEST: Final = _text(r"^$|^sha256:[0-9a-f]{64}$")
AMOUNT: Final = {
    "anyOf": [{"type": "integer", "minimum": 0}, _text(r"^$|^(100|[1-9]?[0-9])%$")],
}
RESOURCES: Final = _record(
    requests={"type": "object", "additionalProperties": {"anyOf": [QUANTITY, {"type": "number"}]}},
    limits={"type": "object", "additionalProperties": {"anyOf": [QUANTITY, {"type": "number"}]}},
)
VARIABLE: Final = _record(
    ("name",), name=_text(r"^[A-Za-z_][A-Za-z0-9_]*$"), value={"type": "string"}, valueFrom=ANY
)
ACCESS_MODES: Final = {
    **_list(_one_of("ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany")),
    "minItems": 1,
}
SCALING: Final = _record(
    stabilizationWindowSeconds=_whole(0, 3600),
    selectPolicy=_one_of("Max", "Min", "Disabled"),
    policies=_list(
        _record(
            ("type", "value", "periodSeconds"),
            type=_one_of("Percent", "Pods"),
            value=_whole(1, 1_000_000),
            periodSeconds=_whole(1, 1800),
        )
    ),
)

SHAPES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "nameOverride": NAME,
        "fullnameOverride": NAME,
        "commonLabels": TEXTS,
        "commonAnnotations": TEXTS,
        "global.imagePullSecrets": _list(NAME),
        "global.imageRegistry": PLACE,
        "image.registry": PLACE,
        "image.repository": PLACE,
        "image.tag": TAG,
        "image.digest": DIGEST,
        "image.pullPolicy": PULLS,
        "image.pullSecrets": _list(NAME),
        "replicaCount": _whole(0, 1000),
        "rollingUpdate.maxSurge": AMOUNT,
        "rollingUpdate.maxUnavailable": AMOUNT,
        "existingConfigMap": NAME,
        "configChange": _one_of("rollout", "live"),
        "secrets.existingSecret": NAME,
        "secrets.values": {
            "type": "object",
            "propertyNames": ENTRY,
            "additionalProperties": {"type": "string", "minLength": 1},
        },
        "secrets.externalSecret.apiVersion": _one_of(
            "external-secrets.io/v1", "external-secrets.io/v1beta1"
        ),
        "secrets.externalSecret.refreshInterval": DURATION,
        "secrets.externalSecret.secretStoreRef": _record(
            name=NAME, kind=_one_of("SecretStore", "ClusterSecretStore")
        ),
        "secrets.externalSecret.data": _list(ANY),
        "secrets.externalSecret.dataFrom": _list(ANY),
        "admin.existingSecret": NAME,
        "admin.tokenKey": ENTRY,
        "encryption.existingSecret": NAME,
        "encryption.key": ENTRY,
        "encryption.previousKey": ENTRY,
        "redis.mode": _one_of("standalone", "sentinel", "cluster", "embedded"),
        "redis.host": HOST,
        "redis.port": PORT,
        "redis.database": _whole(0, 65_535),
        "redis.username": USER,
        "redis.existingSecret": NAME,
        "redis.passwordKey": ENTRY,
        "redis.urlKey": ENTRY,
        "redis.sentinel.hosts": _list(ADDRESS),
        "redis.sentinel.masterName": _text(r"^[A-Za-z0-9._-]*$"),
        "redis.sentinel.username": USER,
        "redis.sentinel.passwordKey": ENTRY,
        "redis.cluster.hosts": _list(ADDRESS),
        "redis.tls.existingSecret": NAME,
        "redis.tls.caKey": ENTRY,
        "redis.tls.certKey": ENTRY,
        "redis.tls.keyKey": ENTRY,
        "redis.cacheUrl": _text(r"^$|^(rediss?|rediss?\+(sentinel|cluster)|unix)://"),
        "redis.cacheUrlSecret": NAME,
        "redis.cacheUrlKey": ENTRY,
        "redis.persistence.existingClaim": NAME,
        "redis.persistence.storageClass": NAME,
        "redis.persistence.accessModes": ACCESS_MODES,
        "redis.persistence.size": QUANTITY,
        "redis.bundled.image.registry": PLACE,
        "redis.bundled.image.repository": PLACE,
        "redis.bundled.image.tag": TAG,
        "redis.bundled.image.digest": DIGEST,
        "redis.bundled.image.pullPolicy": PULLS,
        "redis.bundled.maxMemory": _text(r"^[1-9][0-9]*(kb|mb|gb)$"),
        "redis.bundled.resources": RESOURCES,
        "redis.bundled.persistence.storageClass": NAME,
        "redis.bundled.persistence.accessModes": ACCESS_MODES,
        "redis.bundled.persistence.size": QUANTITY,
        "redis.bundled.affinity": ANY,
        "redis.bundled.podAnnotations": TEXTS,
        "bindAddress": _text(r"^[0-9A-Fa-f:.]{2,45}$"),
        "containerPorts.http": _whole(1024, 65_535),
        "containerPorts.operations": _whole(1024, 65_535),
        "service.type": _one_of("ClusterIP", "NodePort", "LoadBalancer"),
        "service.port": PORT,
        "service.nodePort": _whole(0, 65_535),
        "service.loadBalancerClass": _text(r"^$|^[A-Za-z0-9][A-Za-z0-9./_-]*$"),
        "service.loadBalancerSourceRanges": _list(TEXT),
        "service.externalTrafficPolicy": _one_of("", "Cluster", "Local"),
        "service.annotations": TEXTS,
        "operationsService.port": PORT,
        "operationsService.annotations": TEXTS,
        "ingress.className": NAME,
        "ingress.controller": _one_of("nginx", "haproxy", "none"),
        "ingress.annotations": TEXTS,
        "ingress.hosts": _list(
            _record(
                ("host",),
                host=TEXT,
                paths=_list(
                    _record(
                        ("path",),
                        path=_text(r"^/[^\s\"]*$"),
                        pathType=_one_of("Prefix", "Exact", "ImplementationSpecific"),
                    )
                ),
            )
        ),
        "ingress.tls": _list(_record(secretName=NAME, hosts=_list(TEXT))),
        "ingress.timeoutSeconds": _whole(1, 86_400),
        "httpRoute.parentRefs": _list(
            _record(("name",), name=NAME, namespace=NAME, sectionName=NAME, port=PORT)
        ),
        "httpRoute.hostnames": _list(TEXT),
        "httpRoute.path": _text(r"^/[^\s\"]*$"),
        "httpRoute.timeouts": _record(request=DURATION, backendRequest=DURATION),
        "httpRoute.annotations": TEXTS,
        "autoscaling.minReplicas": _whole(1, 1000),
        "autoscaling.maxReplicas": _whole(1, 1000),
        "autoscaling.targetCPUUtilizationPercentage": _whole(0, 1000),
        "autoscaling.targetMemoryUtilizationPercentage": _whole(0, 1000),
        "autoscaling.metrics": _list(ANY),
        "autoscaling.behavior": _record(scaleUp=SCALING, scaleDown=SCALING),
        "podDisruptionBudget.maxUnavailable": AMOUNT,
        "podDisruptionBudget.minAvailable": AMOUNT,
        "lifecycle.preStopSeconds": _whole(0, 600),
        "lifecycle.drainSeconds": _whole(0, 3600),
        "terminationGracePeriodSeconds": _whole(0, 7200),
        **{
            f"{probe}.{field}": _whole(1, 3600)
            for probe in ("startupProbe", "livenessProbe", "readinessProbe")
            for field in ("periodSeconds", "timeoutSeconds", "failureThreshold")
        },
        "resources": RESOURCES,
        "serviceAccount.name": NAME,
        "serviceAccount.annotations": TEXTS,
        "podSecurityContext": ANY,
        "securityContext": ANY,
        "podAnnotations": TEXTS,
        "podLabels": TEXTS,
        "priorityClassName": NAME,
        "nodeSelector": TEXTS,
        "tolerations": _list(
            _record(
                key=TEXT,
                operator=_one_of("Exists", "Equal"),
                value=TEXT,
                effect=_one_of("NoSchedule", "PreferNoSchedule", "NoExecute"),
                tolerationSeconds={"type": "integer"},
            )
        ),
        "affinity": _record(nodeAffinity=ANY, podAffinity=ANY, podAntiAffinity=ANY),
        "topologySpread.whenUnsatisfiable": _one_of("ScheduleAnyway", "DoNotSchedule"),
        "topologySpreadConstraints": _list(ANY),
        "networkPolicy.clientsFrom": _list(
            _record(podSelector=ANY, namespaceSelector=ANY, ipBlock=ANY)
        ),
        "networkPolicy.operationsFrom": _list(
            _record(podSelector=ANY, namespaceSelector=ANY, ipBlock=ANY)
        ),
        "networkPolicy.egress.ports": _list(PORT),
        "networkPolicy.egress.extra": _list(_record(ports=_list(ANY), to=_list(ANY))),
        "serviceMonitor.namespace": NAME,
        "serviceMonitor.additionalLabels": TEXTS,
        "serviceMonitor.interval": DURATION,
        "serviceMonitor.scrapeTimeout": DURATION,
        "serviceMonitor.relabelings": _list(ANY),
        "serviceMonitor.metricRelabelings": _list(ANY),
        "prometheusRule.namespace": NAME,
        "prometheusRule.additionalLabels": TEXTS,
        "prometheusRule.runbookUrlPrefix": _text(r"^$|^https?://.*/$"),
        "prometheusRule.disabled": _list(_text(r"^[A-Za-z0-9_]+$")),
        "prometheusRule.alertLabels": TEXTS,
        "dashboard.namespace": NAME,
        "dashboard.labels": TEXTS,
        "dashboard.annotations": TEXTS,
        "extraEnv": _list(VARIABLE),
        "extraEnvFrom": _list(_record(prefix=TEXT, configMapRef=ANY, secretRef=ANY)),
        "extraVolumes": _list(ANY),
        "extraVolumeMounts": _list(ANY),
        "extraContainers": _list(ANY),
        "extraInitContainers": _list(ANY),
        "extraObjects": _list({"type": ["object", "string"]}),
        "test.resources": RESOURCES,
    }
)


def chart_schema() -> dict[str, Any]:
    """The whole schema."""
    meanings = {value.path: value.meaning for value in documented_values()}
    alone = {
        "properties": {
            "replicaCount": {"const": 1},
            "autoscaling": {"properties": {"enabled": {"const": False}}},
        }
    }
    is_embedded = {"properties": {"redis": {"properties": {"mode": {"const": "embedded"}}}}}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the chart cluster-gw",
        **_of_values(default_values(), "", meanings),
        "allOf": [{"if": is_embedded, "then": alone}],
    }


def _of_values(values: Mapping[str, Any], path: str, meanings: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            name: _of_value(default, f"{path}.{name}".lstrip("."), meanings)
            for name, default in values.items()
        },
        # Only a null takes them away, and then nothing could be rendered.
        "required": [name for name, default in values.items() if isinstance(default, dict | bool)],
    }


def _of_value(default: Any, path: str, meanings: Mapping[str, str]) -> dict[str, Any]:
    told = {"description": meanings[path]} if path in meanings else {}
    if path == "config":
        return {**told, **configuration_schema()}
    if path in SHAPES:
        return {**told, **SHAPES[path]}
    match default:
        case bool():
            return {**told, "type": "boolean"}
        case int():
            return {**told, "type": "integer", "minimum": 0}
        case str():
            return {**told, "type": "string"}
        case dict():
            return {**told, **_of_values(default, path, meanings)}
        case _:
            raise TypeError(f"{path}: its default does not tell its shape; add it to SHAPES")


def configuration_schema() -> dict[str, Any]:
    """Names and kinds of all settings; ranges are left to the gateway, which takes references."""
    root = inspect.type_info(Settings)
    schema = _of_type(root, "")
    for path in OWNED:
        section, _, field = path.partition(".")
        del schema["properties"][section]["properties"][field]
    schema["properties"]["auth"]["properties"]["mode"] = {"const": "keys"}
    return schema


def _of_type(kind: inspect.Type, path: str) -> dict[str, Any]:
    match kind:
        case inspect.UnionType():
            return _of_union([_of_type(arm, path) for arm in kind.types])
        case inspect.StructType():
            return {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    field.name: _of_type(field.type, f"{path}.{field.name}".lstrip("."))
                    for field in kind.fields
                },
                "required": [field.name for field in kind.fields if field.required],
            }
        case inspect.DictType():
            return {"type": "object", "additionalProperties": _of_type(kind.value_type, path)}
        case inspect.VarTupleType():
            items = _list(_of_type(kind.item_type, path))
            return items if path != "catalog" else _of_union([items, dict(TEXT)])
        case _:
            return _of_scalar(kind)


def _of_scalar(kind: inspect.Type) -> dict[str, Any]:
    match kind:
        case inspect.NoneType():
            return {"type": "null"}
        case inspect.LiteralType():
            return {"anyOf": [{"enum": list(kind.values)}, _text(REFERENCE)]}
        case inspect.EnumType():
            return {"anyOf": [{"enum": [str(each) for each in kind.cls]}, _text(REFERENCE)]}
        case inspect.IntType() | inspect.FloatType():
            return {"type": ["number", "string"]}
        case inspect.BoolType():
            return {"anyOf": [{"type": "boolean"}, _text(REFERENCE)]}
        case _:
            return {"type": "string"}


def _of_union(arms: list[dict[str, Any]]) -> dict[str, Any]:
    """One type with several names where the arms allow it: its faults read better."""
    only_null = [arm for arm in arms if arm != {"type": "null"}]
    if len(only_null) == 1 and isinstance(only_null[0].get("type"), str):
        return {**only_null[0], "type": [only_null[0]["type"], "null"]}
    return {"anyOf": arms}


def schema_text() -> str:
    """The file."""
    return json.dumps(chart_schema(), indent=1, default=dict) + "\n"


def main() -> None:
    """Write both files anew."""
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    write_page()


if __name__ == "__main__":
    main()
