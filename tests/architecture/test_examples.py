"""Configurations that the documents and the compose file show are accepted as they stand."""

import re
from pathlib import Path

import msgspec
import pytest
from ruamel.yaml import YAML

from cluster_gw.cli.demo import added_presets, demo_document, greeting
from cluster_gw.cli.simulate_provider import read_simulator
from cluster_gw.providers.presets import PRESETS
from cluster_gw.settings import build_catalog, load, secrets
from tests.architecture.source_tree import ROOT

ENVIRONMENT = {
    **{f"{owner}_KEY_{name}": f"{owner}-{name}" for owner in ("GROQ", "TEAM") for name in "AB"},
    "OPENROUTER_KEY": "or-secret",
    "APP_A_SHA256": "ab" * 32,
    "APP_B_SHA256": "cd" * 32,
}
EVERYWHERE = {"printf", "sha256sum", "cut"}
"""What the smallest Debian has."""


def yaml_blocks(text: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)


def programs(script: str) -> set[str]:
    """The first word of each command of a shell script, also of those in `$( )`."""
    told = re.sub(r"#.*|'[^']*'", "", script.replace("\\\n", " "))
    first = re.findall(
        r"(?:^|[|(]|&&) *(?:sudo )?([a-z][a-z0-9-]*)(?= |$)", told, flags=re.MULTILINE
    )
    return {name for name in first if name != "export"}


def compose_configs() -> dict[str, str]:
    """Files the compose file itself holds for its containers, by name."""
    compose = YAML(typ="safe", pure=True).load((ROOT / "docker-compose.yml").read_text("utf-8"))
    return {n: config["content"] for n, config in compose["configs"].items() if "content" in config}


@pytest.mark.parametrize("page", ["README.md", "docs/operating.md"])
def test_configuration_of_a_page_is_valid(tmp_path: Path, page: str) -> None:
    (block,) = yaml_blocks((ROOT / page).read_text(encoding="utf-8"))
    written = tmp_path / "cluster-gw.yaml"
    written.write_text(block, encoding="utf-8")

    loaded = load(written, ENVIRONMENT)

    assert loaded.warnings == ()
    assert loaded.settings.default_combo == "auto"


def test_first_line_of_the_readme_installs_what_its_other_lines_call() -> None:
    scripts = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    first, *others = scripts
    installed = set(first.split("install -y ")[1].split())

    called = set().union(*map(programs, others))

    assert called >= {"make", "curl", "openssl", "cluster-gw"}
    assert called - installed - EVERYWHERE == {"cluster-gw", "docker", "helm", "kubectl"}


@pytest.mark.parametrize(
    ("number", "names"),
    [
        (0, ("auto", "auto:smart", "auto:my-profile", "coding", "llama-3.3-70b", "glm-4.7")),
        (1, ("qwen3-32b", "qwen3-32b-fast", "qwen/qwen3-32b:free")),
        (2, ("own:qwen#relay-b-example-v1", "own/qwen", "only-b")),
    ],
)
def test_names_of_the_page_on_routing_lead_somewhere(
    tmp_path: Path, number: int, names: tuple[str, ...]
) -> None:
    block = yaml_blocks((ROOT / "docs/routing.md").read_text(encoding="utf-8"))[number]
    written = tmp_path / "cluster-gw.yaml"
    written.write_text(block, encoding="utf-8")

    loaded = load(written, ENVIRONMENT)
    catalog = build_catalog(loaded.settings, 1)

    assert loaded.warnings == ()
    assert [name for name in names if catalog.resolve(name) is None] == []


def test_configuration_of_the_compose_file_is_valid(tmp_path: Path) -> None:
    written = tmp_path / "cluster-gw.yaml"
    written.write_text(compose_configs()["gateway"], encoding="utf-8")

    loaded = load(written, {"GW_SERVER__HOST": "0.0.0.0"})

    assert loaded.warnings == ()
    assert loaded.settings.server.host == "0.0.0.0"


def test_provider_of_the_compose_file_accepts_the_keys_of_its_gateways(tmp_path: Path) -> None:
    configs = compose_configs()
    written = tmp_path / "cluster-gw.yaml"
    written.write_text(configs["gateway"], encoding="utf-8")
    described = tmp_path / "provider.json"
    described.write_text(configs["provider"], encoding="utf-8")

    provider = read_simulator(described)
    held = {secret.reveal() for secret in secrets(load(written, {}).settings).values()}

    assert held == set(provider.keys)


def test_demo_prints_the_commands_of_the_readme(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("\\\n  ", "")
    environment = {"GW_DEMO_FAST_PORT": "1", "GW_DEMO_STEADY_PORT": "2"}
    written = tmp_path / "demo.json"
    written.write_bytes(msgspec.json.encode(demo_document(environment)))

    printed = greeting(load(written, environment).settings)

    commands = [line for line in printed.splitlines() if line.startswith("curl ")]
    assert len(commands) == 3
    assert [command for command in commands if command not in readme] == []


def test_readme_names_every_variable_whose_provider_the_demo_adds() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    environ = {preset.env: "account:secret" for preset in PRESETS.values()}

    added = {PRESETS[name].env for name in added_presets(environ)}

    assert set(re.findall(r"`([A-Z]+_API_KEY)`", readme)) == added


def test_environment_of_the_image_names_real_settings(tmp_path: Path) -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    environment = dict(re.findall(r"(GW_[A-Z]+__[A-Z_]+)=(\S+)", image))
    written = tmp_path / "cluster-gw.yaml"
    written.write_text("auth: {mode: keys}\n", encoding="utf-8")

    loaded = load(written, environment)

    assert environment
    assert [warning for warning in loaded.warnings if "GW_" in warning] == []
    assert loaded.settings.redis.data_dir == "/var/lib/cluster-gw"


def test_the_check_of_the_image_asks_the_port_that_beats_the_file(tmp_path: Path) -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    environment = dict(re.findall(r"(GW_[A-Z]+__[A-Z_]+)=(\S+)", image))
    written = tmp_path / "cluster-gw.yaml"
    written.write_text("server: {port: 9090, admin_port: 9091}\nauth: {mode: keys}\n", "utf-8")

    server = load(written, environment).settings.server

    (exposed,) = re.findall(r"^EXPOSE (.*)$", image, re.MULTILINE)
    assert exposed.split() == [str(server.port), str(server.admin_port)]
    assert "os.environ['GW_SERVER__ADMIN_PORT'] + '/livez'" in image


def test_the_image_is_made_of_what_reaches_its_build_and_of_nothing_else() -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()

    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", image, re.MULTILINE)

    assert lines[0] == "*"
    let_in = {line[1:] for line in lines if line.startswith("!")}
    assert {name.rstrip("/") for names in copied for name in names.split()} == let_in
    assert [name for name in sorted(let_in) if not (ROOT / name).exists()] == []
