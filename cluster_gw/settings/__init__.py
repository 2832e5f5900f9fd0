"""One file and the environment become one checked, frozen `Settings`."""

from cluster_gw.settings.catalog import build_catalog, secrets
from cluster_gw.settings.client import ClientLimits, ClientSettings
from cluster_gw.settings.loading import (
    Loaded,
    config_path,
    load,
    load_bytes,
    load_redis,
    load_shared,
)
from cluster_gw.settings.pool import (
    ComboSettings,
    KeySettings,
    ModelSettings,
    ProviderSettings,
    Settings,
)
from cluster_gw.settings.rules import Runnable
from cluster_gw.settings.secret import Secret, mask_secrets
from cluster_gw.settings.shared import open_shared, write_source

__all__ = [
    "ClientLimits",
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
    "load_shared",
    "mask_secrets",
    "open_shared",
    "secrets",
    "write_source",
]
