"""What a provider stands for once its preset and its own fields are put together."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from cluster_gw.canonical.request import Dialect
from cluster_gw.core.limits.caps import Caps, implied_weight, overlay_caps
from cluster_gw.core.limits.windows import ROLLING, Limits
from cluster_gw.core.routing.catalog import PhaseTimeouts
from cluster_gw.providers.free_tier import FREE_TIER
from cluster_gw.providers.presets import PRESETS, Preset, PresetCaps
from cluster_gw.settings.pool import ModelSettings, ProviderSettings

UNNAMED: Final = Preset(name="", base_url="", env="", day_reset=ROLLING)


class ProviderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A provider with nothing left open; `base_url` is empty when nobody gave one.

    `slow_models` are models whose first byte has another bound than that of `timeouts`.
    """

    dialect: Dialect
    base_url: str
    keyless: bool
    limits: Limits
    caps: Caps
    weighs_tokens: bool
    day_reset: str
    timeouts: PhaseTimeouts
    slow_models: Mapping[str, float]
    quirks: frozenset[str]


def provider_facts(provider: ProviderSettings, *, has_keys: bool = False) -> ProviderFacts:
    """Put a provider together: its own fields win over the preset's, those over the common ones.

    Args:
        provider: as configured.
        has_keys: keys are declared for it, so a preset that could do without is not keyless.
    """
    preset = PRESETS.get(provider.preset or "", UNNAMED)
    own = {k: v for k, v in msgspec.structs.asdict(provider.timeouts).items() if v is not None}
    by_preset = preset.keyless and not has_keys
    return ProviderFacts(
        dialect=provider.dialect or preset.dialect,
        base_url=(provider.base_url or preset.base_url).rstrip("/"),
        keyless=by_preset if provider.keyless is None else provider.keyless,
        limits=provider.limits,
        caps=overlay_caps(_caps(preset.caps), provider.caps),
        weighs_tokens=preset.weighs_tokens,
        day_reset=provider.day_reset or preset.day_reset,
        timeouts=PhaseTimeouts(**{"first_byte_s": preset.first_byte_s, **own}),
        slow_models={} if "first_byte_s" in own else dict(preset.slow_models),
        quirks=preset.quirks,
    )


def default_models(
    name: str, preset: str | None, catalog: Sequence[ModelSettings] | None = None
) -> tuple[ModelSettings, ...]:
    """Give the models a preset brings along, as models of a provider.

    Args:
        name: of the provider.
        preset: of it, None without one.
        catalog: the operator's, in place of ours; its rows name presets as their providers.
    """
    rows = _bundled(preset or "") if catalog is None else catalog
    return tuple(
        msgspec.structs.replace(row, provider=name) for row in rows if row.provider == preset
    )


def bundled_catalog() -> tuple[ModelSettings, ...]:
    """Give our own catalogue, as an operator would write one."""
    return tuple(row for preset in FREE_TIER for row in _bundled(preset))


def _bundled(preset: str) -> tuple[ModelSettings, ...]:
    return tuple(
        msgspec.convert(
            {
                "provider": preset,
                "model": model.model,
                "name": model.name,
                "tier": model.tier,
                "intelligence_rank": model.rank,
                "limits": msgspec.to_builtins(model.limits),
                "monthly_tokens": model.monthly_tokens,
                "context_window": model.context_window,
                "tools": model.tools,
                "vision": model.vision,
            },
            ModelSettings,
        )
        for model in FREE_TIER.get(preset, ())
    )


def overlay(base: Limits, own: Limits) -> Limits:
    """Let the bounds somebody set himself win over `base`, bound by bound."""
    given = {name: v for name, v in msgspec.structs.asdict(own).items() if v is not None}
    return msgspec.structs.replace(base, **given)


def token_weight(model: ModelSettings, facts: ProviderFacts) -> float:
    """Tell how many tokens of the key's daily cap one token of a model uses."""
    if model.token_weight is not None:
        return model.token_weight
    return implied_weight(facts.caps.tpd, model.limits.tpd) if facts.weighs_tokens else 1.0


def _caps(caps: PresetCaps) -> Caps:
    return Caps(rpm=caps.rpm, rpd=caps.rpd, tpd=caps.tpd)
