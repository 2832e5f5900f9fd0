"""`cluster-gw config`: what was changed at run time, and back to the files."""

from types import MappingProxyType
from typing import Any, Final

import click

from cluster_gw.cli.calling import Call
from cluster_gw.cli.options import config_option, json_option, version_option
from cluster_gw.cli.tables import print_rows, tell

COLUMNS: Final = MappingProxyType({"noun": "noun", "id": "of", "fields": "changed to"})
DROPPED: Final = MappingProxyType({"patch": "does not fit the file", "faults": "why"})


@click.group("config", short_help="Tell what was changed at run time.")
def command() -> None:
    """Tell what was changed at run time, or undo all of it."""


@command.command("show", short_help="Tell what was changed at run time.")
@config_option
@json_option
def show_changes(config: str | None, *, as_json: bool) -> int:
    """Tell all changes, as `GET /api/config` does."""
    return tell(config, Call(path="/api/config"), show, as_json=as_json)


@command.command("reset", short_help="Go back to the files.")
@config_option
@click.option("--all", "is_all", is_flag=True, required=True, help="Say that you mean it.")
@version_option
@json_option
def reset(config: str | None, *, is_all: bool, if_match: int | None, as_json: bool) -> int:
    """Undo all changes that were made at run time; clients and their keys stay as they are."""
    if not is_all:
        raise click.UsageError("say --all")
    call = Call(method="DELETE", path="/api/config", version=if_match)
    return tell(config, call, show, as_json=as_json)


def show(document: Any) -> None:
    """Print changes for people."""
    rows = [
        {"noun": noun, "id": name, "fields": fields}
        for noun, things in document["changes"].items()
        for name, fields in things.items()
    ]
    print_rows(rows, COLUMNS, "nothing was changed: the file holds")
    if document["dropped"]:
        print_rows(document["dropped"], DROPPED, "")
    click.echo(f"config_version {document['config_version']}")
