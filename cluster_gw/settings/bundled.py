"""What a provider stands for once its preset and its own fields are put together."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.canonical.request import Dialect
from cluster_gw.core.limits.windows import ROLLING, Limits
from cluster_gw.core.routing.catalog import PhaseTimeouts
from cluster_gw.settings.pool import ModelSettings, ProviderSettings

PRESETS: Final[Mapping[str, Any]] = MappingProxyType({})


class ProviderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A provider with nothing left open."""

    dialect: Dialect
    base_url: str
    keyless: bool
    limits: Limits
    day_reset: str
    timeouts: PhaseTimeouts
    quirks: frozenset[str]


def provider_facts(provider: ProviderSettings) -> ProviderFacts:
    """Put a provider together: its own fields win over the preset's, those over the common ones."""
    preset = PRESETS.get(provider.preset or "")
    own = {k: v for k, v in msgspec.structs.asdict(provider.timeouts).items() if v is not None}
    return ProviderFacts(
        dialect=provider.dialect or (preset.dialect if preset else Dialect.OPENAI),
        base_url=(provider.base_url or (preset.base_url if preset else "")).rstrip("/"),
        keyless=(preset.keyless if preset else False)
        if provider.keyless is None
        else provider.keyless,
        limits=provider.limits,
        day_reset=provider.day_reset or (preset.day_reset if preset else ROLLING),
        timeouts=msgspec.structs.replace(PhaseTimeouts(), **own),
        quirks=frozenset(preset.quirks if preset else ()),
    )


def default_models(name: str, provider: ProviderSettings) -> tuple[ModelSettings, ...]:
    """Give the models a preset brings along, as models of the provider `name`."""
    del name, provider
    return ()
