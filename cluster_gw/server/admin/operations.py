"""What each route of the admin API takes and answers; a route that is not here takes any object."""

from collections.abc import Mapping
from types import GenericAlias, MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.core.routing.explanation import Explanation
from cluster_gw.pipeline.keeping import RequestRecord
from cluster_gw.server.admin import bodies, shown_settings, shown_state
from cluster_gw.server.admin.shown_usage import ShownUsage
from cluster_gw.server.explaining import Asked
from cluster_gw.server.usage_report import PARAMETERS

COMBO: Final = ("combo",)


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of a route.

    Attributes:
        answer: its type; of one thing where a list is answered.
        other: type of another answer it may give; None for none.
        body: type of what it takes; None for nothing.
        query: names it understands.
        status: of the answer.
    """

    answer: Any = dict[str, Any]
    other: Any = None
    body: Any = None
    query: tuple[str, ...] = ()
    status: int = 200


def told(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Give the type of one thing as it is answered alone, with the version of the configuration."""
    fields: list[Any] = [("config_version", int), ("warnings", tuple[str, ...], ())]
    return msgspec.defstruct(
        f"{kind.__name__}Told", fields, bases=(kind,), frozen=True, kw_only=True
    )


def listed(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Give the type of a list of things."""
    items = GenericAlias(tuple, (kind, ...))
    fields: list[Any] = [("items", items), ("config_version", int)]
    return msgspec.defstruct(
        f"{kind.__name__}List", fields, frozen=True, kw_only=True, forbid_unknown_fields=True
    )


_COMBO, _PROFILE = told(shown_settings.ShownCombo), told(shown_settings.ShownProfile)
_MODEL, _KEY = told(shown_settings.ShownModel), told(shown_settings.ShownKey)
_CLIENT, _CACHE = told(shown_settings.ShownClient), shown_settings.ShownCache
_CACHE_CHANGE = Operation(answer=_CACHE, body=dict[str, Any])

OPERATIONS: Final[Mapping[tuple[str, str], Operation]] = MappingProxyType(
    {
        ("GET", "/api/combos"): Operation(answer=listed(shown_settings.ShownCombo)),
        ("GET", "/api/combos/{id:path}"): Operation(answer=_COMBO),
        ("PUT", "/api/combos/{id:path}"): Operation(answer=_COMBO, body=bodies.ComboChange),
        ("DELETE", "/api/combos/{id:path}"): Operation(answer=_COMBO),
        ("GET", "/api/profiles"): Operation(answer=listed(shown_settings.ShownProfile)),
        ("POST", "/api/profiles"): Operation(answer=_PROFILE, body=bodies.NewProfile, status=201),
        ("POST", "/api/profiles/{id}/activate"): Operation(answer=_PROFILE),
        ("GET", "/api/profiles/{id}"): Operation(answer=_PROFILE),
        ("PUT", "/api/profiles/{id}"): Operation(answer=_PROFILE, body=bodies.ComboChange),
        ("DELETE", "/api/profiles/{id}"): Operation(answer=shown_settings.Removed),
        ("GET", "/api/models"): Operation(answer=listed(shown_settings.ShownModel)),
        ("GET", "/api/models/{id:path}"): Operation(answer=_MODEL),
        ("PUT", "/api/models/{id:path}"): Operation(answer=_MODEL, body=bodies.ModelChange),
        ("DELETE", "/api/models/{id:path}"): Operation(answer=_MODEL),
        ("GET", "/api/keys"): Operation(answer=listed(shown_settings.ShownKey)),
        ("GET", "/api/keys/{id}"): Operation(answer=_KEY),
        ("PUT", "/api/keys/{id}"): Operation(answer=_KEY, body=bodies.KeyChange),
        ("DELETE", "/api/keys/{id}"): Operation(answer=_KEY),
        ("DELETE", "/api/keys/{id}/cooldowns"): Operation(answer=shown_state.Cleared),
        ("POST", "/api/keys/{id}/bench"): Operation(answer=shown_state.Benched, body=bodies.Bench),
        ("PUT", "/api/keys/{id}/secret"): Operation(
            answer=shown_settings.Replaced, body=bodies.NewSecret
        ),
        ("DELETE", "/api/keys/{id}/secret"): Operation(
            answer=shown_settings.Replaced, other=shown_settings.Removed
        ),
        ("POST", "/api/key-secrets/reseal"): Operation(answer=shown_settings.Resealed),
        ("GET", "/api/clients"): Operation(answer=listed(shown_settings.ShownClient)),
        ("POST", "/api/clients"): Operation(
            answer=shown_settings.NewKey, body=bodies.NewClient, status=201
        ),
        ("GET", "/api/clients/{id}"): Operation(answer=_CLIENT),
        ("PUT", "/api/clients/{id}"): Operation(answer=_CLIENT, body=bodies.ClientChange),
        ("DELETE", "/api/clients/{id}"): Operation(answer=_CLIENT, other=shown_settings.Removed),
        ("POST", "/api/clients/{id}/rotate"): Operation(
            answer=shown_settings.NewKey, body=bodies.Rotation
        ),
        ("POST", "/api/clients/{id}/revoke"): Operation(answer=_CLIENT),
        ("GET", "/api/health"): Operation(answer=shown_state.ShownHealth),
        ("POST", "/api/health/check"): Operation(
            answer=shown_state.CheckPlanned, body=bodies.CheckOrder, status=202
        ),
        ("GET", "/api/limits"): Operation(answer=listed(shown_state.KeyWindows)),
        ("GET", "/api/fallback"): Operation(answer=shown_settings.Chain, query=COMBO),
        ("PUT", "/api/fallback"): Operation(
            answer=shown_settings.Chain, body=tuple[bodies.ChainEntry | str, ...], query=COMBO
        ),
        ("POST", "/api/fallback/sort/{preset}"): Operation(
            answer=shown_settings.Chain, query=COMBO
        ),
        ("GET", "/api/fallback/routing"): Operation(
            answer=shown_settings.ShownRouting, query=COMBO
        ),
        ("PUT", "/api/fallback/routing"): Operation(
            answer=shown_settings.ShownRouting, body=bodies.RoutingChange, query=COMBO
        ),
        ("GET", "/api/fallback/token-usage"): Operation(answer=shown_settings.Months, query=COMBO),
        ("GET", "/api/fallback/penalty-inspector"): Operation(
            answer=shown_state.Inspected, query=COMBO
        ),
        ("DELETE", "/api/fallback/penalty-inspector"): Operation(answer=shown_state.Cleared),
        ("GET", "/api/settings/headroom"): Operation(answer=shown_settings.ShownHeadroom),
        ("PUT", "/api/settings/headroom"): Operation(
            answer=shown_settings.ShownHeadroom, body=bodies.HeadroomChange
        ),
        ("GET", "/api/settings/thresholds"): Operation(answer=shown_settings.ShownThresholds),
        ("PUT", "/api/settings/thresholds"): Operation(
            answer=shown_settings.ShownThresholds, body=bodies.ThresholdsChange
        ),
        ("GET", "/api/config"): Operation(answer=shown_settings.ShownConfig),
        ("DELETE", "/api/config"): Operation(answer=shown_settings.ShownConfig),
        ("POST", "/api/explain"): Operation(answer=Explanation, body=Asked),
        ("GET", "/api/requests"): Operation(
            answer=listed(shown_state.RequestLine), query=("limit", "kind")
        ),
        ("GET", "/api/requests/{id}"): Operation(answer=RequestRecord),
        ("GET", "/api/cache"): Operation(answer=_CACHE),
        ("GET", "/api/cache/stats"): Operation(answer=_CACHE),
        ("PUT", "/api/cache"): _CACHE_CHANGE,
        ("PUT", "/api/cache/config"): _CACHE_CHANGE,
        ("DELETE", "/api/cache"): Operation(
            answer=shown_state.CacheRemoved, query=("client", "model")
        ),
        ("GET", "/api/workers"): Operation(answer=listed(shown_state.ShownWorker)),
        ("POST", "/api/drain"): Operation(
            answer=shown_state.Drained, body=bodies.DrainOrder, status=202
        ),
        ("DELETE", "/api/drain"): Operation(answer=shown_state.Drained, query=("worker", "all")),
        ("GET", "/api/snapshot"): Operation(answer=shown_state.ShownSnapshot, query=("section",)),
        ("GET", "/api/pins"): Operation(
            answer=shown_state.ShownPins, query=("combo", "scope", "key", "limit")
        ),
        ("DELETE", "/api/pins"): Operation(
            answer=shown_state.PinsRemoved, query=("combo", "scope", "key")
        ),
        ("GET", "/api/audit"): Operation(answer=listed(shown_state.ShownEntry), query=("limit",)),
        ("GET", "/api/usage"): Operation(answer=ShownUsage, query=PARAMETERS),
    }
)
