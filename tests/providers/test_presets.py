"""The table of platforms is usable as it stands."""

from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest

from cluster_gw.providers.presets import LIST, PRESETS, ROLLING, Preset, PresetCaps
from cluster_gw.providers.quirks import QUIRKS


@pytest.mark.parametrize("preset", LIST, ids=lambda preset: preset.name)
def test_a_preset_names_only_what_exists(preset: Preset) -> None:
    url = urlsplit(preset.base_url)

    assert url.scheme == "https"
    assert url.hostname
    assert not preset.base_url.endswith(("/", "/chat/completions"))
    assert preset.quirks <= QUIRKS.keys()
    assert preset.env.isupper()
    assert preset.day_reset == ROLLING or ZoneInfo(preset.day_reset).key
    assert len({model.model for model in preset.default_models}) == len(preset.default_models)


def test_names_are_unique() -> None:
    assert len(PRESETS) == len(LIST)
    assert len({preset.env for preset in LIST}) == len(LIST)


CAPS = {
    "openrouter": PresetCaps(rpd=1000),
    "modelscope": PresetCaps(rpd=1800),
    "requesty": PresetCaps(rpd=180),
    "navy": PresetCaps(tpd=150_000),
    "nvidia": PresetCaps(rpm=40),
}
"""What platforms cap over all models of one key, as the router of the first generation had it."""


def test_caps_over_all_models_are_those_of_the_table() -> None:
    assert {preset.name: preset.caps for preset in LIST if preset.caps != PresetCaps()} == CAPS


def test_only_a_platform_with_a_cap_of_tokens_weighs_them() -> None:
    assert [preset.name for preset in LIST if preset.weighs_tokens] == ["navy"]
    assert PRESETS["navy"].caps.tpd is not None


def test_googles_day_ends_in_california() -> None:
    assert PRESETS["google"].day_reset == "America/Los_Angeles"
