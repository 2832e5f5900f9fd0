"""`import litellm`: what can be carried over is, and everything else is named with its place."""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.cli.importing import faults_in, yaml_of
from cluster_gw.settings import load_bytes
from cluster_gw.settings.litellm import translate
from tests.cli.running import run_command

DOCUMENT: dict[str, Any] = {
    "model_list": [
        {
            "model_name": "gpt-4o",
            "litellm_params": {
                "model": "openai/gpt-4o",
                "api_key": "os.environ/OPENAI_API_KEY",
                "rpm": 500,
                "weight": 3,
            },
            "model_info": {"max_input_tokens": 128_000, "input_cost_per_token": 2.5e-6},
        },
        {
            "model_name": "gpt-4o",
            "litellm_params": {
                "model": "azure/gpt-4o-eu",
                "api_base": "https://eu.openai.azure.com/",
                "api_key": "sk-literal-secret",
                "api_version": "2024-06-01",
                "weight": 1,
            },
        },
        {"model_name": "claude", "litellm_params": {"model": "claude-sonnet-4"}},
        {"model_name": "local", "litellm_params": {"model": "ollama/llama3.1"}},
        {
            "model_name": "vllm",
            "litellm_params": {"model": "hosted_vllm/q", "api_base": "os.environ/VLLM_BASE"},
        },
        {
            "model_name": "vectors",
            "litellm_params": {"model": "text-embedding-3-small"},
            "model_info": {"mode": "embedding"},
        },
    ],
    "litellm_settings": {"num_retries": 3, "request_timeout": 60, "cache": True},
    "router_settings": {"cooldown_time": 30, "model_group_alias": {"gpt-4": "gpt-4o"}},
    "general_settings": {"master_key": "sk-1234"},
}


def combos_of(document: Any) -> dict[str, Any]:
    return {combo["id"]: combo for combo in translate(document, {}).config["combos"]}


def one(**parameters: Any) -> dict[str, Any]:
    return {"model_list": [{"model_name": "m", "litellm_params": parameters}]}


def test_result_is_a_configuration_that_can_be_used() -> None:
    imported = translate(DOCUMENT, {})

    text = yaml_of(imported.config)

    assert faults_in(text, imported) == ()
    environ = {**dict.fromkeys(imported.variables, "k"), "VLLM_BASE": "http://127.0.0.1:8000/v1"}
    settings = load_bytes(text.encode(), environ).settings
    big = settings.models[0]
    assert (big.limits.rpm, big.context_window, big.price.input, big.weight) == (
        *(500, 128_000, 2.5, 2.0),
    )
    assert [combo.strategy for combo in settings.combos[:2]] == ["weighted", "weighted"]
    assert settings.models[-1].embedding is not None
    assert (settings.routing.attempts.max, settings.routing.breaker.cooldown_ms) == (4, 30_000)
    assert settings.cache.enabled
    assert settings.clients[0].key_sha256 == hashlib.sha256(b"sk-1234").hexdigest()


def test_deployments_of_one_name_are_one_combo_and_an_alias_is_another() -> None:
    combos = combos_of(DOCUMENT)

    assert combos["gpt-4o"]["members"] == ["openai/gpt-4o", "eu-openai-azure-com/gpt-4o-eu"]
    assert combos["gpt-4"]["members"] == combos["gpt-4o"]["members"]
    assert "vectors" not in combos


def test_fallbacks_come_after_the_deployments_of_their_own() -> None:
    document = {**DOCUMENT, "litellm_settings": {"fallbacks": [{"gpt-4o": ["claude", "gone"]}]}}

    imported = translate(document, {})

    combo = imported.config["combos"][0]
    assert combo["strategy"] == "priority"
    assert combo["members"][-1] == "anthropic/claude-sonnet-4"
    assert "litellm_settings.fallbacks[0].gpt-4o: names a model that is not there" in imported.notes


def test_secrets_of_the_file_are_named_and_never_repeated(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    redis = {"type": "redis", "host": "r", "password": "hunter2-secret", "port": 6379}
    common = {"cache": True, "cache_params": redis}
    file.write_bytes(msgspec.json.encode({**DOCUMENT, "litellm_settings": common}))

    plain = run_command("import", "litellm", str(file))
    as_json = run_command("import", "litellm", str(file), "--json")

    told = json.loads(as_json.stdout)
    assert (plain.exit_code, as_json.exit_code) == (0, 0)
    for secret in ("sk-literal-secret", "hunter2-secret", "sk-1234"):
        assert secret not in plain.stdout + plain.stderr + as_json.stdout
    assert {"EU_OPENAI_AZURE_COM_KEY_1", "REDIS_PASSWORD"} <= set(told["variables"])
    assert "model_list[1].litellm_params.api_key: stands in the file" in plain.stderr
    assert told["config"]["redis"] == {"url": "redis://:${REDIS_PASSWORD}@r:6379"}


@pytest.mark.parametrize(
    ("document", "note"),
    [
        (one(model="bedrock/x"), "model_list[0].litellm_params.model: calls of bedrock"),
        (one(model="groq/*"), "model_list[0].litellm_params.model: names no model, or all"),
        (
            one(model="openai/x", api_base="http://me:pass@h/v1"),
            "model_list[0].litellm_params.api_base: holds a credential",
        ),
        (one(model="what"), "model_list[0].litellm_params.model: 'what' is of a provider"),
        (one(model="azure/x"), "model_list[0].litellm_params.api_base: is missing"),
        (one(model="hosted_vllm/x"), "model_list[0].litellm_params.api_base: is missing"),
        (one(model="groq/x", rpm="many"), "model_list[0].litellm_params.rpm: expected a number"),
        (one(model="groq/x", moons=1), "model_list[0].litellm_params.moons: not carried over"),
        ({"model_list": [{}]}, "model_list[0].model_name: is missing"),
        ({"model_list": 7}, "model_list: expected a list"),
        ({"router_settings": []}, "router_settings: is no mapping"),
        ({"new_section": {"a": 1}}, "new_section: not carried over"),
        ({"general_settings": {"database_url": "x"}}, "general_settings.database_url: not carried"),
        ({"router_settings": {"routing_strategy": "magic"}}, "router_settings.routing_strategy: "),
        ({"environment_variables": {"A": "b"}}, "environment_variables.A: set it in"),
    ],
)
def test_what_cannot_be_carried_over_is_named_with_its_place(document: Any, note: str) -> None:
    assert any(line.startswith(note) for line in translate(document, {}).notes)


def test_deployments_of_one_model_with_two_keys_are_one_model(tmp_path: Path) -> None:
    document = {
        "model_list": [
            {"model_name": "m", "litellm_params": {"model": "groq/x", "api_key": key, "rpm": rpm}}
            for key, rpm in (("os.environ/A", 30), ("os.environ/B", 20))
        ]
        + [{"model_name": "n", "litellm_params": {"model": "groq/y", "api_key": "os.environ/A"}}]
    }

    imported = translate(document, {})

    assert [model["model"] for model in imported.config["models"]] == ["x", "y"]
    assert imported.config["models"][0]["limits"] == {"rpm": 20}
    assert imported.config["keys"] == [
        {"id": "a", "provider": "groq", "secret": "env:A"},
        {"id": "b", "provider": "groq", "secret": "env:B", "models": ["x"]},
    ]
    assert any("the smaller one is used" in note for note in imported.notes)


def test_order_of_deployments_is_kept() -> None:
    document = {
        "model_list": [
            {"model_name": "m", "litellm_params": {"model": f"groq/{name}", "order": order}}
            for name, order in (("late", 2), ("first", 1))
        ]
    }

    combo = combos_of(document)["m"]

    assert (combo["strategy"], combo["members"]) == ("priority", ["groq/first", "groq/late"])


def test_result_goes_to_a_file_and_a_bad_one_ends_with_2(tmp_path: Path) -> None:
    file, out = tmp_path / "config.yaml", tmp_path / "ours.yaml"
    file.write_bytes(msgspec.json.encode(DOCUMENT))

    good = run_command("import", "litellm", str(file), "--out", str(out))
    empty = run_command("import", "litellm", "-", body="model_list: []")
    broken = run_command("import", "litellm", "-", body="a: [")

    assert (good.exit_code, good.stdout) == (0, "")
    assert out.read_text().startswith("providers:\n")
    assert (empty.exit_code, broken.exit_code) == (2, 2)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "model_list",
                        "model_name",
                        "litellm_params",
                        "model_info",
                        "model",
                        "api_base",
                    ),
                    *("api_key", "rpm", "weight", "order", "router_settings", "litellm_settings"),
                    *(
                        "fallbacks",
                        "cache",
                        "cache_params",
                        "general_settings",
                        "master_key",
                        "mode",
                    ),
                    *(
                        "model_group_alias",
                        "redis_host",
                        "redis_url",
                        "default_fallbacks",
                        "password",
                    ),
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(document=st.dictionaries(st.sampled_from(sorted(DOCUMENT)), VALUES, max_size=4))
def test_no_document_breaks_the_translation(document: dict[str, Any]) -> None:
    imported = translate(document, {})

    assert yaml_of(imported.config)
    assert all(": " in note for note in imported.notes)
