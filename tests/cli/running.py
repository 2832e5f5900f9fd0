"""Runs one command in this process, as a shell would see it."""

from typing import NamedTuple

from click.testing import CliRunner

from cluster_gw.cli.main import run


class Told(NamedTuple):
    """How a command ended, and what it wrote."""

    exit_code: int
    stdout: str
    stderr: str


def run_command(*arguments: str, body: str | None = None) -> Told:
    """Run a command whose configuration is named by its arguments alone.

    Args:
        arguments: after the program's name.
        body: what comes in.
    """
    with CliRunner().isolation(input=body, env={"GW_CONFIG": None}) as streams:
        code = run(arguments)
        return Told(code, streams[0].getvalue().decode(), streams[1].getvalue().decode())
