"""What a provider stands for once its preset and its own fields are put together."""

from typing import Final

import msgspec

from cluster_gw.canonical.request import Dialect
from cluster_gw.core.limits.caps import Caps, implied_weight, overlay_caps
from cluster_gw.core.limits.windows import ROLLING, Limits
from cluster_gw.core.routing.catalog import PhaseTimeouts
from cluster_gw.providers.presets import PRESETS, Preset, PresetCaps, PresetLimits
from cluster_gw.settings.pool import ModelSettings, ProviderSettings

UNNAMED: Final = Preset(name="", base_url="", env="", day_reset=ROLLING)


class ProviderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A provider with nothing left open; `base_url` is empty when nobody gave one."""

    dialect: Dialect
    base_url: str
    keyless: bool
    limits: Limits
    caps: Caps
    weighs_tokens: bool
    day_reset: str
    timeouts: PhaseTimeouts
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
        quirks=preset.quirks,
    )


def default_models(name: str, provider: ProviderSettings) -> tuple[ModelSettings, ...]:
    """Give the models a preset brings along, as models of the provider `name`."""
    preset = PRESETS.get(provider.preset or "", UNNAMED)
    return tuple(
        ModelSettings(
            provider=name,
            model=model.model,
            name=model.name,
            limits=_limits(model.limits),
            context_window=model.context_window,
            tools=model.tools,
            vision=model.vision,
        )
        for model in preset.default_models
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


def _limits(limits: PresetLimits) -> Limits:
    return Limits(rpm=limits.rpm, rpd=limits.rpd, tpm=limits.tpm, tpd=limits.tpd)
