"""The names under which the first generation's operators set caps still work."""

from collections.abc import Callable
from typing import Any

import pytest

from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.windows import Limits
from cluster_gw.settings import Loaded, build_catalog
from cluster_gw.units import RouteId

Load = Callable[..., Loaded]
BIG = RouteId("far/big")


def of_key(loaded: Loaded) -> tuple[Caps, Limits]:
    (key,) = build_catalog(loaded.settings, 1).routes[BIG].keys
    return key.caps, key.limits


@pytest.mark.parametrize(
    ("name", "caps"),
    [
        ("PROVIDER_DAILY_REQUEST_CAP_OPENROUTER", Caps(rpd=7)),
        ("PROVIDER_DAILY_TOKEN_CAP_OPENROUTER", Caps(rpd=1000, tpd=7)),
        ("PROVIDER_MINUTE_REQUEST_CAP_OPENROUTER", Caps(rpd=1000, rpm=7)),
        ("PROVIDER_DAILY_REQUEST_CAP_FAR", Caps(rpd=7)),
    ],
)
def test_variable_sets_a_cap_of_the_preset_or_the_provider_it_names(
    base: dict[str, Any], load: Load, name: str, caps: Caps
) -> None:
    base["providers"]["far"] = {"preset": "openrouter"}

    loaded = load(base, **{name: "7"})

    assert of_key(loaded)[0] == caps
    assert loaded.warnings == ()


def test_zero_lifts_a_presets_cap(base: dict[str, Any], load: Load) -> None:
    base["providers"]["far"] = {"preset": "openrouter"}

    assert of_key(load(base, PROVIDER_DAILY_REQUEST_CAP_OPENROUTER="0"))[0] == Caps()


def test_variable_beats_what_the_file_says_of_the_provider_but_not_of_a_key(
    base: dict[str, Any], load: Load
) -> None:
    base["providers"]["far"]["caps"] = {"rpd": 5, "tpd": 50}
    base["keys"][0]["caps"] = {"tpd": 3}

    caps, _ = of_key(
        load(base, PROVIDER_DAILY_REQUEST_CAP_FAR="7", PROVIDER_DAILY_TOKEN_CAP_FAR="8")
    )

    assert caps == Caps(rpd=7, tpd=3)


def test_concurrency_of_one_platform_beats_that_of_all(base: dict[str, Any], load: Load) -> None:
    everybody = load(base, MAX_CONCURRENT_REQUESTS_PER_KEY="4")
    far = load(base, MAX_CONCURRENT_REQUESTS_PER_KEY="4", MAX_CONCURRENT_REQUESTS_PER_KEY_FAR="2")
    off = load(base, MAX_CONCURRENT_REQUESTS_PER_KEY="4", MAX_CONCURRENT_REQUESTS_PER_KEY_FAR="0")

    assert [of_key(loaded)[1].concurrency for loaded in (everybody, far, off)] == [4, 2, None]


@pytest.mark.parametrize("text", ["", "many", "-1", "1.5", "1e3", "٣"])
def test_malformed_value_is_ignored_and_told(base: dict[str, Any], load: Load, text: str) -> None:
    loaded = load(base, PROVIDER_DAILY_REQUEST_CAP_FAR=text)

    assert of_key(loaded)[0] == Caps()
    assert loaded.warnings == (
        "PROVIDER_DAILY_REQUEST_CAP_FAR: expected a whole number, 0 for none; it is ignored",
    )


def test_platform_nobody_declared_is_told(load: Load) -> None:
    loaded = load(PROVIDER_DAILY_REQUEST_CAP_NAVY="7")

    assert loaded.warnings == (
        "PROVIDER_DAILY_REQUEST_CAP_NAVY: names no provider of this configuration",
    )
