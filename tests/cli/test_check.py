"""`check` prints exactly one line per fault, and its exit code."""

import sys
from pathlib import Path

import msgspec
import pytest

from cluster_gw.settings.loading import NO_FILE
from tests.cli.running import Told, run_command

VALID = """
providers:
  local: {base_url: "http://127.0.0.1:9001/v1", keyless: true}
models:
  - {provider: local, model: qwen}
combos:
  - {id: auto, members: [local/qwen]}
clients:
  - {id: app, key_sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}
"""
BROKEN = """
server: {prot: 8080}
keys:
  - {id: a, provider: grok, secret: "env:NOWHERE_KEY"}
providers:
  groq: {preset: groq}
combos:
  - {id: auto, strategy: balanceed}
"""
FAULTS = [
    'server.prot: unknown field "prot"; did you mean "port"?',
    "keys[0].secret: environment variable NOWHERE_KEY is not set",
    'keys[0].provider: unknown "grok"; did you mean "groq"?',
    'combos[0].strategy: unknown "balanceed"; did you mean "balanced"?',
]


def check(*arguments: str) -> Told:
    return run_command("check", *arguments)


@pytest.fixture
def valid(tmp_path: Path) -> str:
    file = tmp_path / "gw.yaml"
    file.write_text(VALID)
    return str(file)


@pytest.fixture
def broken(tmp_path: Path) -> str:
    file = tmp_path / "broken.yaml"
    file.write_text(BROKEN)
    return str(file)


def test_a_valid_file_is_exit_0_and_one_line(valid: str) -> None:
    result = check("--config", valid)

    assert result.exit_code == 0
    assert result.stdout == (f"{valid} is valid: 1 provider, 0 keys, 1 model, 1 combo, 1 client\n")
    assert result.stderr == ""


def test_a_broken_file_is_exit_2_and_one_line_per_fault_on_stderr(broken: str) -> None:
    result = check("--config", broken)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == FAULTS


def test_json_prints_faults_or_warnings(valid: str, broken: str) -> None:
    good, bad = check("--config", valid, "--json"), check("--config", broken, "--json")

    assert (good.exit_code, bad.exit_code) == (0, 2)
    assert msgspec.json.decode(good.stdout) == {"valid": True, "faults": [], "warnings": []}
    assert msgspec.json.decode(bad.stdout)["faults"] == FAULTS


def test_warnings_go_to_stderr_and_do_not_fail(tmp_path: Path) -> None:
    file = tmp_path / "no-pool.yaml"
    file.write_text("server: {}")

    result = check("--config", str(file))

    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "warning: models: none is declared: there is nothing to route to",
        "warning: clients: none is declared: every request will be refused with 401",
    ]


def test_an_empty_file_is_exit_2(tmp_path: Path) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("# nothing yet\n")

    result = check("--config", str(file))

    assert result.exit_code == 2
    assert result.stderr == "configuration: the file is empty: there is nothing to serve\n"


def test_a_missing_file_is_exit_2(tmp_path: Path) -> None:
    result = check("--config", str(tmp_path / "none.yaml"))

    assert result.exit_code == 2
    assert result.stderr == f"configuration: file {tmp_path}/none.yaml {NO_FILE}\n"


@pytest.mark.parametrize("arguments", [["--nonsense"], ["extra"]])
def test_a_wrong_option_is_exit_2(arguments: list[str]) -> None:
    assert check(*arguments).exit_code == 2


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "server: {port: " + "9" * 400 + "}",
            (
                "server.port: expected a whole number from 1 to 65535, "
                "got a number of too many digits"
            ),
        ),
        ('{"a":' * 3000, "configuration: nested deeper than 32 levels"),
    ],
    ids=["digits", "nesting"],
)
def test_a_file_that_asks_too_much_is_exit_2(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "extreme.yaml"
    file.write_text(text)

    result = check("--config", str(file))

    assert (result.exit_code, result.stderr) == (2, f"{fault}\n")


def test_a_name_that_is_no_utf8_is_told_in_json_too() -> None:
    result = check("--json", "--config", "no-\udcff")

    assert result.exit_code == 2
    assert msgspec.json.decode(result.stdout)["faults"] == [
        f"configuration: file no-\\udcff {NO_FILE}"
    ]


def test_traces_without_what_they_need_are_a_fault_that_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gw.yaml"
    path.write_text(VALID + 'telemetry: {otlp_endpoint: "http://collector:4318"}\n')
    assert check("--config", str(path)).exit_code == 0

    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    told = check("--config", str(path))

    assert told.exit_code == 2
    assert told.stderr == (
        "telemetry.otlp_endpoint: needs what is not installed: pip install 'cluster-gw[otel]'\n"
    )
