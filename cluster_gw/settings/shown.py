"""A configuration as its operator may see it through the admin API: plain values, no secret."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cluster_gw.settings.pool import KeySettings, ModelSettings, Settings
from cluster_gw.settings.secret import mask_secrets

NEVER: Final = frozenset({"secret"})


def show(settings: Settings) -> dict[str, Any]:
    """Give what can be changed through the admin API, as it holds now.

    Returns:
        `models`, `keys` and `combos` as lists in declared order, `routing`, `cache`, and
        `default_combo`.
    """
    return {
        "models": [_model(model) for model in settings.models],
        "keys": [_key(key) for key in settings.keys],
        "combos": [_plain(combo) for combo in settings.combos],
        "routing": _plain(settings.routing),
        "cache": _plain(settings.cache),
        "default_combo": settings.default_combo,
    }


def _model(model: ModelSettings) -> Mapping[str, Any]:
    return {"id": f"{model.provider}/{model.model}", **_plain(model)}


def _key(key: KeySettings) -> Mapping[str, Any]:
    return {name: value for name, value in _plain(key).items() if name not in NEVER}


def _plain(value: Any) -> Mapping[str, Any]:
    shown: Mapping[str, Any] = msgspec.to_builtins(value, enc_hook=mask_secrets)
    return shown
