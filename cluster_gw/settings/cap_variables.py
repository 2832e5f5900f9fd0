"""Caps and concurrency of platforms from the environment, under the names of the first generation.

`PROVIDER_DAILY_REQUEST_CAP_<PLATFORM>`, `PROVIDER_DAILY_TOKEN_CAP_<PLATFORM>`,
`PROVIDER_MINUTE_REQUEST_CAP_<PLATFORM>` and `MAX_CONCURRENT_REQUESTS_PER_KEY[_<PLATFORM>]`, whole
numbers of which 0 means no cap. A platform is a provider or its preset, in capitals. They beat what
the file says of the provider, not what it says of a key.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.settings.faults import Faults
from cluster_gw.settings.pool import ProviderSettings

CAPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PROVIDER_DAILY_REQUEST_CAP": "rpd",
        "PROVIDER_DAILY_TOKEN_CAP": "tpd",
        "PROVIDER_MINUTE_REQUEST_CAP": "rpm",
    }
)
CONCURRENCY: Final = "MAX_CONCURRENT_REQUESTS_PER_KEY"
WHOLE: Final = re.compile(r"[0-9]{1,12}", re.ASCII)


def read_caps(
    environ: Mapping[str, str], providers: Mapping[str, ProviderSettings], faults: Faults
) -> dict[str, ProviderSettings]:
    """Give the providers with what the environment says of their platforms.

    A value that is no whole number is ignored with a warning, and so is a platform nobody declared.
    """
    platforms = {_suffix(name) for name in providers}
    platforms |= {_suffix(p.preset) for p in providers.values() if p.preset is not None}
    known: dict[str, int] = {}
    for name in sorted(environ):
        stem = next((stem for stem in (*CAPS, CONCURRENCY) if name.startswith(f"{stem}_")), None)
        if stem is None and name != CONCURRENCY:
            continue
        if stem is not None and name.removeprefix(f"{stem}_") not in platforms:
            faults.warn(name, "names no provider of this configuration")
        elif not WHOLE.fullmatch(environ[name].strip()):
            faults.warn(name, "expected a whole number, 0 for none; it is ignored")
        else:
            known[name] = int(environ[name])
    return {name: _capped(name, provider, known) for name, provider in providers.items()}


def _capped(name: str, provider: ProviderSettings, known: Mapping[str, int]) -> ProviderSettings:
    def told(stem: str) -> int | None:
        """The provider's own name beats that of its preset."""
        found = (known.get(f"{stem}_{_suffix(one)}") for one in (name, provider.preset) if one)
        return next((value for value in found if value is not None), None)

    caps = {field: value for stem, field in CAPS.items() if (value := told(stem)) is not None}
    slots = told(CONCURRENCY)
    slots = known.get(CONCURRENCY) if slots is None else slots
    if not caps and slots is None:
        return provider
    limits = provider.limits
    if slots is not None:
        limits = msgspec.structs.replace(limits, concurrency=slots or None)
    return msgspec.structs.replace(
        provider, caps=msgspec.structs.replace(provider.caps, **caps), limits=limits
    )


def _suffix(platform: str) -> str:
    return platform.upper().replace("-", "_")
