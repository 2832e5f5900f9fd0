"""The command `cluster-gw`: finds the sub-command, turns faults into exit codes."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import click

from cluster_gw import __version__
from cluster_gw.cli.process import catch_early_signals, fill_standard_streams, say
from cluster_gw.errors import ConfigInvalidError
from cluster_gw.supervisor.failure import ExitCode, StartError

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "serve": "cluster_gw.cli.serve",
        "demo": "cluster_gw.cli.demo",
        "check": "cluster_gw.cli.check",
        "explain": "cluster_gw.cli.explain",
        "status": "cluster_gw.cli.status",
        "limits": "cluster_gw.cli.limits",
        "health": "cluster_gw.cli.health",
        "keys": "cluster_gw.cli.keys",
        "config": "cluster_gw.cli.config",
        "clients": "cluster_gw.cli.clients",
        "pins": "cluster_gw.cli.pins",
        "drain": "cluster_gw.cli.drain",
        "audit": "cluster_gw.cli.audit",
        "cache": "cluster_gw.cli.cache",
        "usage": "cluster_gw.cli.usage",
        "redis": "cluster_gw.cli.redis",
        "doctor": "cluster_gw.cli.doctor",
        "import": "cluster_gw.cli.importing",
        "simulate": "cluster_gw.cli.simulate",
        "replay": "cluster_gw.cli.replay",
        "simulate-provider": "cluster_gw.cli.simulate_provider",
        "completion": "cluster_gw.cli.completion",
        "worker": "cluster_gw.cli.worker",
    }
)
SERVING: Final = frozenset({"serve", "demo", "worker"})


class LazyCommands(click.Group):
    """Imports a command when it is called: `check` must not wait for the worker's imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Name every command in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the module of a command and give what it calls `command`."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = importlib.import_module(module).command
        return command


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cluster-gw")
def root() -> None:
    """Run and operate an LLM gateway cluster."""


def run(arguments: Sequence[str]) -> int:
    """Run one command and give the exit code of the process.

    Args:
        arguments: the words after the program's name.
    """
    try:
        result = root.main(list(arguments), prog_name="cluster-gw", standalone_mode=False)
    except ConfigInvalidError as error:
        for fault in error.faults:
            say(fault, err=True)
        return ExitCode.BAD_CONFIGURATION
    except StartError as error:
        say(f"error: {error}", err=True)
        return error.code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.FAILED
    return result if isinstance(result, int) else ExitCode.OK


def main() -> None:
    """Run the command of this process."""
    arguments = sys.argv[1:]
    fill_standard_streams()
    if arguments[:1] and arguments[0] in SERVING:
        catch_early_signals()
    sys.exit(run(arguments))
