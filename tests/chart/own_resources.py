"""Shapes of objects that operators of others define: the fields the chart writes, strictly."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

TEXT: Final[Mapping[str, Any]] = MappingProxyType({"type": "string", "minLength": 1})
DURATION: Final[Mapping[str, Any]] = MappingProxyType(
    {"type": "string", "pattern": r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"}
)
PROMETHEUS_DURATION: Final[Mapping[str, Any]] = MappingProxyType(
    {"type": "string", "pattern": r"^[0-9]+(ms|s|m|h|d)$"}
)


def _record(*required: str, **fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {name.replace("__", "/"): dict(shape) for name, shape in fields.items()},
        "required": list(required),
    }


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items), "minItems": 1}


LABELS: Final[Mapping[str, Any]] = MappingProxyType(
    {"type": "object", "additionalProperties": {"type": "string"}}
)
RELABELING: Final = _record(
    action=TEXT,
    sourceLabels=_list(TEXT),
    targetLabel=TEXT,
    regex=TEXT,
    replacement=TEXT,
    separator=TEXT,
)
OBJECTS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "monitoring.coreos.com/v1/ServiceMonitor": _record(
            "selector",
            "endpoints",
            selector=_record(matchLabels=LABELS),
            namespaceSelector=_record(matchNames=_list(TEXT)),
            endpoints=_list(
                _record(
                    "port",
                    port=TEXT,
                    path=TEXT,
                    interval=PROMETHEUS_DURATION,
                    scrapeTimeout=PROMETHEUS_DURATION,
                    relabelings=_list(RELABELING),
                    metricRelabelings=_list(RELABELING),
                )
            ),
        ),
        "monitoring.coreos.com/v1/PrometheusRule": _record(
            "groups",
            groups=_list(
                _record(
                    "name",
                    name=TEXT,
                    rules=_list(
                        _record(
                            "expr",
                            "alert",
                            alert=TEXT,
                            expr=TEXT,
                            **{"for": PROMETHEUS_DURATION},
                            keep_firing_for=PROMETHEUS_DURATION,
                            labels=LABELS,
                            annotations=LABELS,
                        )
                    ),
                )
            ),
        ),
        "gateway.networking.k8s.io/v1/HTTPRoute": _record(
            "parentRefs",
            "rules",
            parentRefs=_list(
                _record(
                    "name", name=TEXT, namespace=TEXT, sectionName=TEXT, port={"type": "integer"}
                )
            ),
            hostnames=_list(TEXT),
            rules=_list(
                _record(
                    matches=_list(_record(path=_record(type={"enum": ["PathPrefix"]}, value=TEXT))),
                    backendRefs=_list(_record("name", "port", name=TEXT, port={"type": "integer"})),
                    timeouts=_record(request=DURATION, backendRequest=DURATION),
                )
            ),
        ),
        "external-secrets.io/v1/ExternalSecret": _record(
            "secretStoreRef",
            refreshInterval=DURATION,
            secretStoreRef=_record("name", name=TEXT, kind=TEXT),
            target=_record(name=TEXT, creationPolicy={"enum": ["Owner"]}),
            data=_list(
                _record(
                    "secretKey",
                    "remoteRef",
                    secretKey=TEXT,
                    remoteRef=_record("key", key=TEXT, property=TEXT, version=TEXT),
                )
            ),
            dataFrom=_list({"type": "object"}),
        ),
    }
)
"""The `spec` of each, by version and kind."""
