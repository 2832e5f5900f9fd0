"""One file and the environment become one checked, frozen `Settings`."""

from cluster_gw.settings.catalog import build_catalog, secrets
from cluster_gw.settings.loading import Loaded, config_path, load, load_bytes, load_redis
from cluster_gw.settings.pool import (
    ClientSettings,
    ComboSettings,
    KeySettings,
    ModelSettings,
    ProviderSettings,
    Settings,
)
from cluster_gw.settings.rules import Runnable
from cluster_gw.settings.secret import Secret, mask_secrets

__all__ = [
    "ClientSettings",
    "ComboSettings",
    "KeySettings",
    "Loaded",
    "ModelSettings",
    "ProviderSettings",
    "Runnable",
    "Secret",
    "Settings",
    "build_catalog",
    "config_path",
    "load",
    "load_bytes",
    "load_redis",
    "mask_secrets",
    "secrets",
]
