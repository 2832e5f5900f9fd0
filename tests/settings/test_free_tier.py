"""The models that presets bring along, and an operator's own in their place."""

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from cluster_gw.errors import ConfigInvalidError
from cluster_gw.providers.free_tier import LIST
from cluster_gw.providers.presets import PRESETS
from cluster_gw.settings import build_catalog
from cluster_gw.settings.free_tier_page import PAGE, catalog_page
from cluster_gw.settings.loading import Loaded, load, load_bytes, load_shared, read_base
from cluster_gw.settings.overlay import merge
from cluster_gw.settings.patches import Patch, all_routes
from cluster_gw.settings.shared import open_shared, write_source

ROOT: Final = Path(__file__).parents[2]
OWN: Final = """\
models:
  - {provider: groq, model: new-model, tier: Frontier, intelligence_rank: 1, monthly_tokens: ~20M,
     limits: {rpm: 7}}
  - {provider: cohere, model: of-nobody-here}
"""


def of(catalog: Any = None, **sections: Any) -> bytes:
    config: dict[str, Any] = {
        "auth": {"mode": "none"},
        "providers": {"quick": {"preset": "groq"}, "g": {"preset": "google"}},
        "keys": [
            {"id": "a", "provider": "quick", "secret": "x1"},
            {"id": "b", "provider": "g", "secret": "x2"},
        ],
        **sections,
    }
    return msgspec.json.encode(config | ({} if catalog is None else {"catalog": catalog}))


def models_of(loaded: Loaded) -> list[str]:
    return [f"{model.provider}/{model.model}" for model in loaded.settings.models]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "catalog.yaml"
    path.write_text(OWN)
    return path


def test_the_page_is_not_stale() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == catalog_page(), "run make docs"


def test_every_row_is_of_a_preset_and_says_how_good_it_is() -> None:
    for row in LIST:
        assert row.preset in PRESETS
        assert row.tier in {"Frontier", "Large", "Medium", "Small"}
    ranks = [(row.rank, row.name) for row in LIST]
    assert ranks == sorted(ranks, key=lambda pair: pair[0]), "the best first"


def test_presets_bring_models_with_ranks_limits_and_allowances() -> None:
    loaded = load_bytes(of(), {})

    best = loaded.settings.models[0]
    assert models_of(loaded)[:2] == ["quick/openai/gpt-oss-120b", "quick/llama-3.3-70b-versatile"]
    assert (best.tier, best.intelligence_rank, best.limits.rpm) == ("Large", 14, 30)
    assert best.monthly_tokens == 6_000_000


def test_our_own_catalogue_named_as_the_operators_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "copy.yaml"
    path.write_text(catalog_page())
    copied, ours = load_bytes(of(f"file:{path}"), {}), load_bytes(of(), {})

    assert copied.settings.models == ours.settings.models
    assert build_catalog(copied.settings, 1) == build_catalog(ours.settings, 1)


def test_operators_catalogue_stands_in_for_the_whole_of_ours(file: Path) -> None:
    loaded = load_bytes(of(f"file:{file}"), {})

    (model,) = loaded.settings.models
    assert (model.provider, model.model, model.limits.rpm) == ("quick", "new-model", 7)
    assert (model.tier, model.intelligence_rank, model.monthly_tokens) == (
        "Frontier",
        1,
        20_000_000,
    )


def test_models_of_the_configuration_win_over_any_catalogue(file: Path) -> None:
    own = [{"provider": "quick", "model": "mine"}]

    assert models_of(load_bytes(of(f"file:{file}", models=own), {})) == ["quick/mine"]
    assert models_of(load_bytes(of(models=own), {}))[0] == "quick/mine"


def test_catalogue_may_stand_in_the_configuration_itself() -> None:
    rows = [{"provider": "google", "model": "x"}, {"provider": "google", "model": "y"}]

    assert models_of(load_bytes(of(rows), {})) == ["g/x", "g/y"]
    assert models_of(load_bytes(of([]), {})) == []


def test_catalogue_is_watched_and_workers_see_what_their_parent_read(
    file: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_bytes(of(f"file:{file}"))
    loaded = load(config, {})
    shared = open_shared()
    write_source(shared, loaded.source)
    file.unlink()

    assert file in loaded.files
    assert models_of(load_shared(shared, {})) == ["quick/new-model"]


def test_model_of_a_catalogue_can_be_changed_while_running(file: Path) -> None:
    base = read_base(of(f"file:{file}"), {})
    patch = Patch(noun="models", id="quick/new-model", fields={"enabled": False})

    merged = merge(base, [patch])

    assert all_routes(base.plain) == ["quick/new-model"]
    assert merged.dropped == ()
    assert [model.enabled for model in merged.loaded.settings.models] == [False]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("models: [{provider: grok, model: x}]", 'catalog[0].provider: unknown preset "grok"'),
        ("models: [{provider: groq, model: x, teir: Large}]", "catalog[0].teir: unknown field"),
        ("models: [{provider: groq, model: x, tier: Huge}]", "catalog[0].tier: "),
        ("models: [{provider: groq, model: 'x y'}]", "catalog[0].model: must be printable"),
        (
            "models: [{provider: groq, model: x}, {provider: groq, model: x}]",
            "catalog[1]: is the same model as catalog[0]",
        ),
        ("models: {}", "catalog: the file must hold a list of `models`"),
        ("keys: []", "catalog: the file must hold a list of `models`, and nothing else"),
        ("models: []\nkeys: []", "catalog: the file must hold a list of `models`, and nothing"),
        ("models: [", "catalog: line"),
        ("", "catalog: the file must hold"),
    ],
)
def test_fault_of_a_catalogue_names_its_place(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(text)

    with pytest.raises(ConfigInvalidError) as refusal:
        load_bytes(of(f"file:{path}"), {})

    assert any(line.startswith(fault) for line in refusal.value.faults), refusal.value.faults


@pytest.mark.parametrize(
    ("catalog", "fault"),
    [
        ("file:catalog.yaml", "catalog: file: must name an absolute path"),
        ("file:/nowhere/at-all.yaml", "catalog: file /nowhere/at-all.yaml cannot be read"),
        ("/somewhere.yaml", "catalog: "),
        ({}, "catalog: "),
    ],
)
def test_catalogue_that_is_none_is_refused(catalog: Any, fault: str) -> None:
    with pytest.raises(ConfigInvalidError) as refusal:
        load_bytes(of(catalog), {})

    assert any(line.startswith(fault) for line in refusal.value.faults), refusal.value.faults
