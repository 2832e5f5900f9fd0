"""`simulate` runs described pools, tells every fault of a file, and writes what it found."""

import sys
from pathlib import Path

import msgspec
import pytest

from tests.cli.running import Told, run_command

SMALL = """
about: Two providers.
asking: {requests: 60, duration_s: 120}
providers:
  - {name: ada, reliability: 0.9, keys: 2, price: {input: 1, output: 2}}
  - {name: bob}
"""


def simulate(*arguments: str) -> Told:
    return run_command("simulate", *arguments)


@pytest.fixture
def small(tmp_path: Path) -> str:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return str(file)


def test_a_scenario_is_told_as_a_table_with_what_it_compares(small: str) -> None:
    result = simulate(small, "--seeds", "1", "--replicas", "2")

    assert result.exit_code == 0
    assert "small: 60 requests in 120 s, 1 seed, 2 workers" in result.stdout
    for word in ("oracle", "bandit", "least-latency", "Two providers.", "ada-2 "):
        assert word in result.stdout


def test_json_has_regret_latencies_and_use_by_key(small: str) -> None:
    result = simulate(small, "--strategies", "bandit, classic:p2c,bandit", "--seeds", "2", "--json")

    (outcome,) = msgspec.json.decode(result.stdout)["outcomes"]
    assert [one["strategy"] for one in outcome["measures"]] == ["oracle", "bandit", "classic:p2c"]
    bandit = outcome["measures"][1]
    assert set(bandit["calls_by_key"]) == {"ada-1", "ada-2", "bob-1"}
    assert bandit["requests"] == 120
    assert 0 < bandit["p50_s"] <= bandit["p99_s"]
    assert bandit["cost_usd"] > 0


def test_faults_of_all_files_and_names_are_told_at_once_with_exit_2(
    small: str, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("providers: [{nam: ada}]")

    result = simulate(str(broken), small, "nowhere.yaml", "--strategies", "bandit,rond-robin")

    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        '--strategies: unknown "rond-robin"; did you mean "round-robin"?',
        f'{broken}: providers[0].nam: unknown field "nam"; did you mean "name"?',
        f"{broken}: providers[0].name: is missing",
        "scenario file nowhere.yaml does not exist",
    ]


def test_what_the_configuration_would_refuse_is_told_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "zone.yaml"
    file.write_text("providers: [{name: ada, day_reset: Nowhere/City}]")

    result = simulate(str(file))

    assert result.exit_code == 2
    assert result.stderr.startswith(f"{file}: providers.ada.day_reset: must be ")


def test_a_pool_that_allows_nothing_serves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "shut.yaml"
    file.write_text("asking: {requests: 20}\nproviders: [{name: ada, limits: {rpm: 0}}]")

    result = simulate(str(file), "--seeds", "1", "--json")

    assert result.exit_code == 0
    (outcome,) = msgspec.json.decode(result.stdout)["outcomes"]
    assert {one["success_ratio"] for one in outcome["measures"]} == {0.0}


@pytest.mark.parametrize("option", [("--seeds", "0"), ("--replicas", "65"), ("--colour",)])
def test_options_out_of_range_are_exit_2(small: str, option: tuple[str, ...]) -> None:
    assert simulate(small, *option).exit_code == 2


def test_a_directory_that_cannot_be_made_is_exit_2(small: str) -> None:
    result = simulate(small, "--out", f"{small}/inside", "--seeds", "1")

    assert result.exit_code == 2
    assert result.stderr.startswith(f"--out: {small}/inside: ")


def test_reports_and_pictures_are_written(small: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = tmp_path / "found"

    result = simulate(small, "--seeds", "1", "--strategies", "bandit", "--out", str(found))

    assert result.exit_code == 0
    assert sorted(path.name for path in found.iterdir()) == [
        "report.json",
        "report.md",
        "small.png",
    ]
    assert (found / "small.png").read_bytes().startswith(b"\x89PNG")


def test_without_the_extra_everything_but_pictures_is_written(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cluster_gw.cli.plots", None)
    found = tmp_path / "found"

    result = simulate(small, "--seeds", "1", "--strategies", "bandit", "--out", str(found))

    assert result.exit_code == 0
    assert "no pictures: install the extra" in result.stderr
    assert sorted(path.name for path in found.iterdir()) == ["report.json", "report.md"]


def test_a_scenario_that_asks_too_much_is_exit_2(tmp_path: Path) -> None:
    digits, nesting = tmp_path / "digits.yaml", tmp_path / "nesting.yaml"
    digits.write_text("providers: [{name: ada, reliability: " + "9" * 400 + "}]")
    nesting.write_text('{"a":' * 3000)

    result = simulate(str(digits), str(nesting))

    assert result.exit_code == 2
    first, second = result.stderr.splitlines()
    assert first.startswith(f"{digits}: providers[0].reliability: expected ")
    assert second == f"{nesting}: scenario: nested deeper than 32 levels"
