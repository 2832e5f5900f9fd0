"""`cluster-gw completion`: what a shell needs to complete commands and options."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from cluster_gw.supervisor.failure import ExitCode, StartError

PROGRAM: Final = "cluster-gw"
VARIABLE: Final = "_CLUSTER_GW_COMPLETE"


@click.command("completion", short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell: `eval "$(cluster-gw completion bash)"`."""
    kind = get_completion_class(shell)
    if kind is None:
        raise StartError(f"there is no completion of {shell}", ExitCode.BAD_CONFIGURATION)
    root = context.find_root().command
    click.echo(kind(root, {}, PROGRAM, VARIABLE).source())
