"""`cluster-gw check`: whether a configuration can be used, and every reason why not."""

import os
from collections.abc import Sized

import click
import msgspec

from cluster_gw.cli.options import config_option, json_option
from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings import config_path, load
from cluster_gw.supervisor.failure import ExitCode


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    valid: bool
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@click.command("check", short_help="Validate a configuration: every fault, a line each.")
@config_option
@json_option
def command(config: str | None, *, as_json: bool) -> int:
    """Validate a configuration: exit 0, or 2 with one line per fault on stderr."""
    path = config_path(config, os.environ)
    try:
        loaded = load(path, os.environ)
    except ConfigInvalidError as error:
        if not as_json:
            raise
        _print(Report(valid=False, faults=error.faults))
        return ExitCode.BAD_CONFIGURATION
    if as_json:
        _print(Report(valid=True, warnings=loaded.warnings))
        return ExitCode.OK
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}", err=True)
    found = loaded.settings
    click.echo(
        f"{path} is valid: {_count(found.providers, 'provider')}, {_count(found.keys, 'key')}, "
        f"{_count(found.models, 'model')}, {_count(found.combos, 'combo')}, "
        f"{_count(found.clients, 'client')}"
    )
    return ExitCode.OK


def _count(items: Sized, noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _print(report: Report) -> None:
    click.echo(msgspec.json.encode(report).decode())
