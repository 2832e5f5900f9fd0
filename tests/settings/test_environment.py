"""The environment beats the file: tunables leniently, names strictly."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings import Loaded, Secret, config_path, load_bytes
from cluster_gw.settings import load as load_file

Load = Callable[..., Loaded]
FaultsOf = Callable[..., list[str]]


def test_a_variable_beats_the_file(base: dict[str, Any], load: Load) -> None:
    base["server"] = {"port": 9000, "workers": 2}

    server = load(base, GW_SERVER__PORT="9001").settings.server

    assert (server.port, server.workers) == (9001, 2)


def test_every_kind_of_value_can_be_set(load: Load) -> None:
    settings = load(
        GW_ROUTING__PEEK__IDLE_MS="700",
        GW_ROUTING__HEADROOM__FLOOR="0.25",
        GW_CACHE__ENABLED="yes",
        GW_REDIS__WHEN_LOST="closed",
        GW_REDIS__URL="redis://:pw@h:1/0",
        GW_REDIS__DATA_DIR="",
        GW_ROUTING__COOLDOWN__CEILING_S="60",
        GW_DEFAULT_COMBO="auto",
    ).settings

    assert settings.routing.peek.idle_ms == 700
    assert settings.routing.headroom.floor == 0.25
    assert settings.cache.enabled is True
    assert settings.redis.when_lost == "closed"
    assert settings.redis.url == Secret("redis://:pw@h:1/0")
    assert settings.redis.data_dir is None
    assert settings.routing.cooldown.ceiling_s == 60


@pytest.mark.parametrize(("value", "expected"), [("auto", "auto"), ("off", "off"), ("4096", 4096)])
def test_a_value_may_be_a_word_or_a_number(load: Load, value: str, expected: str | int) -> None:
    settings = load(GW_ROUTING__GUARDRAILS__UNIFIED_MAX_TOKENS=value).settings

    assert settings.routing.guardrails.unified_max_tokens == expected


@pytest.mark.parametrize("value", ["abc", "0", "70000", "8080.5", "", "1e3"])
def test_a_tunable_out_of_range_is_ignored_with_a_warning(
    base: dict[str, Any], load: Load, value: str
) -> None:
    base["server"] = {"port": 9000}

    loaded = load(base, GW_SERVER__PORT=value)

    assert loaded.settings.server.port == 9000
    assert loaded.warnings[0].startswith("GW_SERVER__PORT: expected a whole number from 1 to 65535")
    assert loaded.warnings[0].endswith(" (sets server.port); it is ignored")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GW_REDIS__URL", "redsi://h"),
        ("GW_REDIS__WHEN_LOST", "opened"),
        ("GW_AUTH__MODE", "nokeys"),
        ("GW_DEFAULT_COMBO", "nobody"),
    ],
)
def test_a_wrong_name_or_address_is_a_fault(faults: FaultsOf, name: str, value: str) -> None:
    assert len(faults(None, **{name: value})) == 1


def test_a_misspelt_variable_is_named_with_the_nearest_one(load: Load) -> None:
    assert load(GW_SERVER__PROT="1").warnings == (
        "GW_SERVER__PROT: names no setting; did you mean GW_SERVER__PORT?",
    )


def test_other_variables_of_the_product_are_left_alone(load: Load) -> None:
    assert load(GW_ADMIN_TOKEN="x", GW_CONFIG="y", GW_SERVICE_HOST="z", PATH="p").warnings == ()


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ('{"big": 0.5}', 0.5),
        ('{"far/big": {"weight": 2}}', 2.0),
        ('{"big": 1.5, "far/big": 0}', 0.0),
        ('{"big": 0}', 0.0),
    ],
)
def test_both_forms_of_weight_overrides_beat_the_weight(
    base: dict[str, Any], load: Load, text: str, weight: float
) -> None:
    base["models"][0]["weight"] = 0.7

    models = load(base, MODEL_ROUTING_OVERRIDES=text).settings.models

    assert [model.weight for model in models] == [weight, 1.0]


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("{", "MODEL_ROUTING_OVERRIDES: is not a JSON object; it is ignored"),
        ("[1]", "MODEL_ROUTING_OVERRIDES: is not a JSON object; it is ignored"),
        (
            '{"big": 2.1}',
            'MODEL_ROUTING_OVERRIDES: "big" needs a number from 0 to 2; the entry is ignored',
        ),
        (
            '{"big": true}',
            'MODEL_ROUTING_OVERRIDES: "big" needs a number from 0 to 2; the entry is ignored',
        ),
        ('{"bgi": 1}', 'MODEL_ROUTING_OVERRIDES: "bgi" is no model of this configuration'),
    ],
)
def test_a_wrong_weight_override_is_dropped_with_a_warning(
    load: Load, text: str, warning: str
) -> None:
    loaded = load(MODEL_ROUTING_OVERRIDES=text)

    assert loaded.warnings == (warning,)
    assert {model.weight for model in loaded.settings.models} == {1.0}


def test_a_reference_stands_for_its_variable(base: dict[str, Any], load: Load) -> None:
    base["providers"]["far"]["base_url"] = "https://${HOST}/${PATH_:-v1}/$${x}"
    base["server"] = {"port": "${PORT}"}
    base["keys"][0]["limits"] = {"tpm": "${TPM:-150k}"}

    settings = load(base, HOST="h.example", PORT="9100").settings

    assert settings.providers["far"].base_url == "https://h.example/v1/${x}"
    assert settings.server.port == 9100
    assert settings.keys[0].limits.tpm == 150_000


@pytest.mark.parametrize("text", ["${", "${}", "${1A}", "${A B}", "x${A-b}"])
def test_a_malformed_reference_is_a_fault(
    base: dict[str, Any], faults: FaultsOf, text: str
) -> None:
    base["models"][0]["name"] = text

    assert faults(base) == ["models[0].name: a reference must read ${NAME} or ${NAME:-default}"]


@pytest.mark.parametrize("text", ["${A:-${B}}", "x${A:-{}}", "${A:-$${B}}"])
@pytest.mark.parametrize("environ", [{}, {"A": "sk-a", "B": "sk-b"}])
def test_a_default_that_would_end_at_the_wrong_brace_is_a_fault(
    base: dict[str, Any], faults: FaultsOf, text: str, environ: dict[str, str]
) -> None:
    base["keys"][0]["secret"] = text

    assert faults(base, **environ) == [
        "keys[0].secret: a default cannot hold a brace or another reference"
    ]


def test_a_value_from_the_environment_is_not_expanded_again(
    base: dict[str, Any], load: Load
) -> None:
    base["models"][0]["name"] = "${A}"

    assert load(base, A="${B}").settings.models[0].name == "${B}"


def test_a_secret_file_is_read_without_its_line_end_and_watched(
    base: dict[str, Any], load: Load, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text("sk-from-file\n")
    base["keys"][0]["secret"] = f"file:{file}"

    loaded = load(base)

    assert loaded.settings.keys[0].secret == Secret("sk-from-file")
    assert loaded.files == (file,)


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", b"x" * 70_000, b"a\x00b"])
def test_a_secret_file_without_a_credential_is_a_fault(
    base: dict[str, Any], faults: FaultsOf, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    base["keys"][0]["secret"] = f"file:{file}"

    assert len(faults(base)) == 1


def test_the_option_beats_the_variable_beats_the_default() -> None:
    assert config_path("a", {"GW_CONFIG": "b"}) == Path("a")
    assert config_path(None, {"GW_CONFIG": "b"}) == Path("b")
    assert config_path(None, {}) == Path("cluster-gw.yaml")


def test_a_missing_or_unreadable_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalidError, match="does not exist"):
        load_file(tmp_path / "none.yaml", {})
    with pytest.raises(ConfigInvalidError, match=r"cannot be read \(Is a directory\)"):
        load_file(tmp_path, {})


def test_a_loaded_file_is_among_those_to_watch(tmp_path: Path) -> None:
    file = tmp_path / "gw.yaml"
    file.write_text("server: {port: 9000}\n")

    loaded = load_file(str(file), {})

    assert loaded.files == (file,)
    assert loaded.settings.server.port == 9000


def test_a_file_without_a_pool_is_a_gateway_with_nothing_to_route_to() -> None:
    loaded = load_bytes(b"server: {}", {})

    assert loaded.settings.combos[0].id == loaded.settings.default_combo == "auto"
    assert len(loaded.warnings) == 2


def test_an_open_door_is_warned_of(base: dict[str, Any], load: Load) -> None:
    base["redis"] = {"when_lost": "open"}

    assert load(base).warnings == (
        'redis.when_lost: "open" may exceed every limit while Redis is away',
    )


def test_a_key_given_twice_is_warned_of(base: dict[str, Any], load: Load) -> None:
    base["keys"].append(base["keys"][0] | {"id": "far-b"})

    assert load(base).warnings == (
        "keys[1]: has the same secret as keys[0]: their limits are counted apart",
    )
