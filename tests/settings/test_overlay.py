"""An overlay over a file: what fits holds, what does not is left out whole, nothing leaks in."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings.loading import Base, read_base
from cluster_gw.settings.overlay import (
    MAX_CHARACTERS,
    Merged,
    Table,
    changed,
    check_change,
    merge,
    patches_of,
    read_table,
    write_table,
)
from cluster_gw.settings.patches import (
    COMBO_FIELDS,
    KEY_FIELDS,
    MODEL_FIELDS,
    SETTING_FIELDS,
    Patch,
)
from cluster_gw.settings.shown import show

Merge = Callable[..., Merged]
ENVIRON = {"FAR_KEY": "sk-far-private", "OTHER": "sk-other"}


@pytest.fixture
def file(base: dict[str, Any]) -> dict[str, Any]:
    """The base configuration with a classic combo and a preset that brings its models."""
    base["providers"]["quick"] = {"preset": "groq"}
    base["providers"]["also"] = {"preset": "openai"}
    base["keys"].append({"id": "also-a", "provider": "also", "secret": "env:OTHER"})
    base["keys"].append({"id": "quick-a", "provider": "quick", "secret": "env:OTHER"})
    base["combos"].append(
        {"id": "coding", "family": "classic", "strategy": "priority", "members": ["far/big"]}
    )
    return base


def read(document: dict[str, Any], **environ: str) -> Base:
    return read_base(msgspec.json.encode(document), {**ENVIRON, **environ}, files={})


def patch(name: str, **fields: Any) -> Patch:
    noun, _, thing = name.partition(".")
    return Patch(noun=noun, id=thing, fields=fields)


def over(document: dict[str, Any], *patches: Patch, **environ: str) -> Merged:
    return merge(read(document, **environ), patches)


def test_patches_of_every_noun_hold_together(file: dict[str, Any]) -> None:
    found = over(
        file,
        patch("models.far/big", enabled=False, weight=0.5, limits={"rpm": 7}),
        patch("keys.far-a", enabled=False, models=["big"], limits={"tpd": "2M"}),
        patch("profiles.night", members=["local/small"]),
        patch("combos.coding", strategy="weighted", members=["local/small", "far/big"]),
        patch("settings.routing", headroom={"floor": 0.3}, task_weight_share=0.0),
        patch("settings.default_combo", combo="night"),
    )

    settings = found.loaded.settings
    model, key = settings.models[0], settings.keys[0]
    coding, night = settings.combos[1:]
    assert found.dropped == ()
    assert (model.enabled, model.weight, model.limits.rpm) == (False, 0.5, 7)
    assert (key.enabled, key.models, key.limits.tpd) == (False, ("big",), 2_000_000)
    assert (coding.strategy, coding.members) == ("weighted", ("local/small", "far/big"))
    assert (night.id, night.profile, settings.default_combo) == ("night", True, "night")
    assert (settings.routing.headroom.floor, settings.routing.headroom.ramp_start) == (0.3, 0.2)
    assert settings.routing.task_weight_share == 0.0


def test_file_stays_what_it_was(file: dict[str, Any]) -> None:
    base = read(file)
    before = msgspec.json.encode(base.plain)

    merge(base, [patch("models.far/big", weight=0.1), patch("combos.coding", members="all")])

    assert msgspec.json.encode(base.plain) == before


def test_secrets_stay_those_of_the_file(file: dict[str, Any]) -> None:
    settings = over(file, patch("keys.far-a", enabled=True)).loaded.settings

    assert settings.keys[0].secret.reveal() == "sk-far-private"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (patch("models.far/nothing", weight=1.0), 'models: unknown "far/nothing"'),
        (patch("models.far/big", weight=3.0), "models[0].weight: expected a number from 0 to 2"),
        (
            patch("models.far/big", base_url="x"),
            'models.far/big.base_url: unknown field "base_url"',
        ),
        (patch("keys.far-a", secret="env:OTHER"), 'keys.far-a.secret: unknown field "secret"'),
        (patch("keys.far-a", base_url="http://x"), "keys.far-a.base_url: unknown field"),
        (patch("keys.far-a", models=["tiny"]), 'keys[0].models[0]: unknown "tiny"'),
        (patch("combos.coding", strategy="balanceed"), 'combos[1].strategy: unknown "balanceed"'),
        (patch("combos.none", strategy="fast"), 'combos: unknown "none"'),
        (patch("combos.coding", members=["far/none"]), 'combos[1].members[0]: unknown "far/none"'),
        (patch("combos.coding", weights={"speed": -1}), "combos[1].weights.speed: expected"),
        (patch("profiles.coding"), "profiles.coding: the file has a combo of this name"),
        (patch("profiles.a b"), "combos[2].id: must be"),
        (patch("settings.default_combo", combo="none"), 'default_combo: unknown "none"'),
        (patch("settings.redis", url="redis://x"), 'settings.redis: unknown "redis"'),
        (patch("settings.routing", headroom={"floor": 2}), "routing.headroom.floor: expected"),
        (patch("settings.routing", headroom="${OTHER}"), "routing.headroom: expected a mapping"),
        (
            patch("settings.routing", hedroom={}),
            'settings.routing.hedroom: unknown field "hedroom"',
        ),
        (patch("moons.io", phase=1), 'moons.io: unknown "moons"'),
        (patch("clients.none", detail=True), 'clients: unknown "none"'),
        (patch("clients.app", enabled=True), 'clients.app.enabled: unknown field "enabled"'),
        (patch("made_clients.app", detail=True), "made_clients.app: the file has a client of this"),
        (patch("made_clients.new", detail=True), "clients[1].key_sha256: is missing"),
    ],
)
def test_patch_that_does_not_fit_is_left_out_whole_and_the_others_hold(
    file: dict[str, Any], bad: Patch, said: str
) -> None:
    good = [patch("models.local/small", weight=0.25), patch("combos.auto", strategy="fastest")]
    noisy = patch(f"{bad.noun}.{bad.id}", **bad.fields)

    found = over(file, good[0], noisy, good[1])

    settings = found.loaded.settings
    assert [one.patch for one in found.dropped] == [bad]
    assert any(fault.startswith(said) for fault in found.dropped[0].faults), found.dropped
    assert (settings.models[1].weight, settings.combos[0].strategy) == (0.25, "fastest")
    assert settings == over(file, *good).loaded.settings


def test_two_fields_of_a_patch_are_left_out_together(file: dict[str, Any]) -> None:
    settings = over(file, patch("models.far/big", weight=0.5, context_window=-1)).loaded.settings

    assert settings.models[0].weight == 1.0


def test_tunable_out_of_range_is_the_default_and_takes_no_other_with_it(
    file: dict[str, Any],
) -> None:
    routing = {"headroom": {"floor": 7}, "task_weight_share": 0.1, "moon": 1}
    table: Table = {"settings": {"routing": routing}}

    found = merge(read(file), patches_of(table))

    names = {one.patch.name for one in found.dropped}
    assert names == {"settings.routing.headroom", "settings.routing.moon"}
    held = found.loaded.settings.routing
    assert (held.headroom.floor, held.task_weight_share) == (0.1, 0.1)


def test_many_bad_patches_are_found_among_many_good_ones(file: dict[str, Any]) -> None:
    file["models"] += [{"provider": "far", "model": f"m{number}"} for number in range(60)]
    patches = [
        patch(f"models.far/m{number}", weight=9 if number % 13 == 0 else 0.5)
        for number in range(60)
    ]

    found = over(file, *patches)

    weights = [model.weight for model in found.loaded.settings.models[2:62]]
    assert {one.patch.id for one in found.dropped} == {f"far/m{n}" for n in range(0, 60, 13)}
    assert weights == [1.0 if n % 13 == 0 else 0.5 for n in range(60)]


def test_file_that_is_broken_by_itself_is_the_fault_of_nobody_else(file: dict[str, Any]) -> None:
    file["default_combo"] = "none"

    with pytest.raises(ConfigInvalidError, match="default_combo"):
        over(file, patch("models.far/big", weight=0.5))


def test_references_are_not_resolved_in_patches(file: dict[str, Any]) -> None:
    response = {"forbidden_substrings": ["${OTHER}", "env:OTHER", "file:/etc/passwd"]}

    combo = over(file, patch("combos.coding", response=response)).loaded.settings.combos[1]

    assert combo.response.forbidden_substrings == ("${OTHER}", "env:OTHER", "file:/etc/passwd")


def test_overlay_beats_the_environment_but_not_the_override_of_weights(
    file: dict[str, Any],
) -> None:
    settings = over(
        file,
        patch("settings.routing", headroom={"floor": 0.4}),
        patch("models.far/big", weight=0.5),
        GW_ROUTING__HEADROOM__FLOOR="0.9",
        MODEL_ROUTING_OVERRIDES='{"big": 0.75}',
    ).loaded.settings

    assert settings.routing.headroom.floor == 0.4
    assert settings.models[0].weight == 0.75


def test_one_model_of_a_preset_is_changed_and_the_others_stay(file: dict[str, Any]) -> None:
    before = over(file).loaded.settings.models
    quick = next(model for model in before if model.provider == "quick")

    after = over(file, patch(f"models.quick/{quick.model}", enabled=False)).loaded.settings

    wanted = [msgspec.structs.replace(model, enabled=model is not quick) for model in before]
    assert list(after.models) == wanted


def test_combo_that_no_file_names_can_be_changed(file: dict[str, Any]) -> None:
    del file["combos"]

    settings = over(file, patch("combos.auto", strategy="smartest")).loaded.settings

    assert [combo.strategy for combo in settings.combos] == ["smartest"]


def test_order_puts_its_routes_first_and_keeps_all_others(file: dict[str, Any]) -> None:
    del file["providers"]["quick"], file["providers"]["also"], file["keys"][1:]
    order = [{"route": "local:small", "enabled": False}, {"route": "far/gone", "enabled": True}]

    members = over(file, patch("combos.auto", order=order)).loaded.settings.combos[0].members

    assert [msgspec.to_builtins(one) for one in members] == [
        {"route": "local/small", "enabled": False},
        {"route": "far/big", "enabled": True},
    ]


def test_changes_add_up_and_null_goes_back_to_the_file() -> None:
    table = changed({}, patch("models.a/b", weight=0.5, limits={"rpm": 3}))
    table = changed(table, patch("models.a/b", limits={"tpm": None}, enabled=False))
    table = changed(table, patch("models.a/b", weight=None))
    assert table == {"models": {"a/b": {"limits": {"rpm": 3, "tpm": None}, "enabled": False}}}

    table = changed(table, patch("models.a/b", limits=None, enabled=None))
    assert table == {}


def test_null_at_any_depth_of_the_settings_goes_back_to_the_file() -> None:
    table = changed({}, patch("settings.routing", headroom={"floor": 0.3, "ramp_start": 0.5}))
    table = changed(table, patch("settings.routing", headroom={"floor": None}))
    assert table == {"settings": {"routing": {"headroom": {"ramp_start": 0.5}}}}

    assert changed(table, patch("settings.routing", headroom={"ramp_start": None})) == {}


def test_weights_are_one_vector(file: dict[str, Any]) -> None:
    table = changed({}, patch("combos.coding", weights={"health": 1.0}))
    table = changed(table, patch("combos.coding", weights={"quality": 1.0}))

    assert table["combos"]["coding"] == {"weights": {"quality": 1.0}}


def test_profile_without_any_field_stays_until_it_is_removed() -> None:
    table = changed({}, patch("profiles.night"))
    assert table == {"profiles": {"night": {}}}

    assert changed(table, patch("profiles.night"), remove=True) == {}


def test_fault_of_a_change_begins_with_its_field(file: dict[str, Any]) -> None:
    table = changed({}, patch("models.far/big", weight=0.5))
    table = changed(table, patch("combos.coding", strategy="weigthed"))

    with pytest.raises(ConfigInvalidError) as told:
        check_change(read(file), patches_of(table), {"combos.coding"})

    assert told.value.faults == ('strategy: unknown "weigthed"; did you mean "weighted"?',)


def test_profile_that_is_in_use_cannot_go(file: dict[str, Any]) -> None:
    table = changed({}, patch("profiles.night"))
    table = changed(table, patch("settings.default_combo", combo="night"))
    check_change(read(file), patches_of(table), {"profiles.night"})

    without = changed(table, patch("profiles.night"), remove=True)
    with pytest.raises(ConfigInvalidError, match='default_combo: unknown "night"'):
        check_change(read(file), patches_of(without), {"profiles.night"})


def test_stored_overlay_reads_as_it_was_written_with_what_others_wrote() -> None:
    table: Table = {"zebra": {"x": {"new": 1}}, "models": {"a/b": {"weight": 0.5}}}

    text = write_table(table)

    assert read_table(text) == table
    assert write_table(changed(read_table(text), patch("models.a/b", weight=None))) == (
        '{"zebra":{"x":{"new":1}}}'
    )
    assert [one.name for one in patches_of(table)] == ["models.a/b", "zebra.x"]


@pytest.mark.parametrize("text", ["", "[]", '{"models": 1}', '{"models": {"a": 1}}', "\ud800"])
def test_text_that_is_no_overlay_is_refused(text: str) -> None:
    with pytest.raises((ConfigInvalidError, UnicodeEncodeError)):
        read_table(text)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
FIELD_NAMES = st.sampled_from(
    [*COMBO_FIELDS, *MODEL_FIELDS, *KEY_FIELDS, *SETTING_FIELDS["routing"], "combo", "secret"]
)
NAMES = st.sampled_from(
    [
        *("models.far/big", "keys.far-a", "combos.auto", "profiles.p", "settings.routing"),
        *("settings.default_combo", "zebra.x"),
    ]
)


@given(name=NAMES, fields=st.dictionaries(FIELD_NAMES, JSON_VALUES, max_size=3))
@settings(max_examples=150, deadline=None)
def test_whatever_stands_in_a_patch_it_fits_or_is_left_out(
    name: str, fields: dict[str, Any]
) -> None:
    document = {
        "providers": {"far": {"base_url": "https://far.example/v1"}},
        "keys": [{"id": "far-a", "provider": "far", "secret": "env:FAR_KEY"}],
        "models": [{"provider": "far", "model": "big"}],
        "auth": {"mode": "none"},
    }
    wild = patch(name, **fields)
    table = read_table(write_table(changed({}, wild)))

    found = over(document, *patches_of(table))

    assert len(found.kept) + len(found.dropped) == len(patches_of(table))


def test_overlay_has_a_bound() -> None:
    table = changed({}, patch("combos.a", members=["x" * 100] * (MAX_CHARACTERS // 100)))

    with pytest.raises(ConfigInvalidError, match="larger"):
        write_table(table)


def test_half_a_character_pair_is_refused() -> None:
    with pytest.raises(ConfigInvalidError, match="surrogate"):
        write_table(changed({}, patch("combos.a", response={"forbidden_substrings": ["\ud83d"]})))


def test_what_is_shown_holds_no_secret(file: dict[str, Any]) -> None:
    text = msgspec.json.encode(show(over(file).loaded.settings)).decode()

    assert "sk-far-private" not in text
    assert "secret" not in text
    assert '"id":"far-a"' in text
