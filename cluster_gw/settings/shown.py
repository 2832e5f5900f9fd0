"""A configuration as its operator may see it through the admin API: plain values, no secret."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cluster_gw.settings.client import ClientSettings
from cluster_gw.settings.pool import KeySettings, ModelSettings, Settings
from cluster_gw.settings.secret import mask_secrets

NEVER: Final = frozenset({"secret"})
KEY_HASH: Final = "key_sha256"
FINGERPRINT: Final = 8
"""Digits: enough to tell keys apart, too few to find one."""


def show(settings: Settings) -> dict[str, Any]:
    """Give what can be changed through the admin API, as it holds now.

    Returns:
        `models`, `keys`, `combos` and `clients` as lists in declared order, `routing`, `cache`,
        and `default_combo`.
    """
    return {
        "models": [_model(model) for model in settings.models],
        "keys": [_key(key) for key in settings.keys],
        "combos": [_plain(combo) for combo in settings.combos],
        "clients": [_client(client) for client in settings.clients],
        "routing": _plain(settings.routing),
        "cache": _plain(settings.cache),
        "default_combo": settings.default_combo,
    }


def _model(model: ModelSettings) -> Mapping[str, Any]:
    return {"id": f"{model.provider}/{model.model}", **_plain(model)}


def _key(key: KeySettings) -> Mapping[str, Any]:
    return {name: value for name, value in _plain(key).items() if name not in NEVER}


def _client(client: ClientSettings) -> Mapping[str, Any]:
    """A client; of its keys the first digits of their hashes, by which they can be told apart."""
    shown = {name: value for name, value in _plain(client).items() if name != KEY_HASH}
    previous = [
        {"fingerprint": fingerprint(one.key_sha256), "until_ms": one.until_ms}
        for one in client.previous_keys
    ]
    return {**shown, "fingerprint": fingerprint(client.key_sha256), "previous_keys": previous}


def fingerprint(key_sha256: str) -> str:
    """Give what is shown of the hash of a key."""
    return key_sha256[:FINGERPRINT].lower()


def _plain(value: Any) -> Mapping[str, Any]:
    shown: Mapping[str, Any] = msgspec.to_builtins(value, enc_hook=mask_secrets)
    return shown
