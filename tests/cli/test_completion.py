"""Shells are told how to complete, and are answered."""

import os
import subprocess
import sys

import pytest

from tests.cli.running import run_command


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_of_each_shell_is_printed(shell: str) -> None:
    told = run_command("completion", shell)

    assert (told.exit_code, "_CLUSTER_GW_COMPLETE" in told.stdout) == (0, True)


def test_unknown_shell_is_refused() -> None:
    assert run_command("completion", "csh").exit_code == 2


def test_commands_of_a_group_are_completed() -> None:
    environ = {
        **os.environ,
        "_CLUSTER_GW_COMPLETE": "bash_complete",
        "COMP_WORDS": "cluster-gw clients r",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "cluster_gw"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.split() == ["plain,revoke", "plain,rotate"]
