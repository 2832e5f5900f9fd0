"""The table of platforms is usable as it stands."""

from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest

from cluster_gw.providers.presets import LIST, PRESETS, ROLLING, Preset
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


def test_googles_day_ends_in_california() -> None:
    assert PRESETS["google"].day_reset == "America/Los_Angeles"
