"""`cluster-gw config`: what was changed at run time, and back to the files."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import click
import msgspec

from cluster_gw.cli.calling import Call
from cluster_gw.cli.options import config_option, json_option, version_option
from cluster_gw.cli.tables import print_rows, tell

THRESHOLDS: Final = "/api/settings/thresholds"
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


@command.command("thresholds", short_help="Tell or change thresholds of all combos.")
@click.argument("changes", nargs=-1, metavar="[SECTION.FIELD=VALUE]...")
@config_option
@version_option
@json_option
def thresholds(
    changes: tuple[str, ...], config: str | None, *, if_match: int | None, as_json: bool
) -> int:
    """Tell when something is cut off, rests or counts less; or change that, for all workers.

    As in `breaker.threshold=5 bench.for_s=300 cooldown.ceiling_s=null`; null goes back to the file.
    """
    body = read_changes(changes)
    if if_match is not None and not changes:
        raise click.UsageError("--if-match belongs to a change")
    method = "PUT" if changes else "GET"
    call = Call(method=method, path=THRESHOLDS, body=body or None, version=if_match)
    return tell(config, call, show_thresholds, as_json=as_json)


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


def read_changes(changes: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Read words such as `breaker.threshold=5`.

    Raises:
        click.UsageError: one has another form, or a field stands twice.
    """
    body: dict[str, dict[str, Any]] = {}
    for word in changes:
        name, is_said, text = word.partition("=")
        section, has_field, field = name.partition(".")
        if not (is_said and has_field and section and field):
            raise click.UsageError(f"write SECTION.FIELD=VALUE; got {word}")
        fields = body.setdefault(section, {})
        if field in fields:
            raise click.UsageError(f"{name} is given twice")
        try:
            fields[field] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            raise click.UsageError(f"{name}: {text} is no number, true, false or null") from None
    return body


def show_thresholds(document: Any) -> None:
    """Print thresholds for people, as they are written to change them."""
    for section, fields in document.items():
        if isinstance(fields, Mapping):
            for field, value in fields.items():
                click.echo(f"{section}.{field}={msgspec.json.encode(value).decode()}")
    click.echo(f"config_version {document['config_version']}")


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
