"""`cluster-gw config`: what was changed at run time, and back to the files."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

import click
import msgspec

from cluster_gw.cli.calling import Call
from cluster_gw.cli.options import config_option, json_option, version_option
from cluster_gw.cli.tables import print_rows, tell

EXAMPLE: Final = "breaker.threshold=5"
GATE: Final = "response"
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
    call = change_call(THRESHOLDS, read_changes(changes), if_match)
    return tell(config, call, show_thresholds, as_json=as_json)


@command.command("gate", short_help="Tell or change what a combo takes for an answer.")
@click.argument("combo")
@click.argument("changes", nargs=-1, metavar="[FIELD=VALUE]...")
@config_option
@version_option
@json_option
def gate(
    combo: str,
    changes: tuple[str, ...],
    config: str | None,
    *,
    if_match: int | None,
    as_json: bool,
) -> int:
    """Tell what a combo takes for an answer; or change that, for all workers.

    As in `require_terminal=true min_content_length=20 apply_to=stream`; null goes back to the file.
    """
    body = read_changes(tuple(f"{GATE}.{word}" for word in changes))
    call = change_call(f"/api/combos/{quote(combo, safe='')}", body, if_match)
    return tell(config, call, show_gate, as_json=as_json)


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


def change_call(path: str, body: dict[str, dict[str, Any]], version: int | None) -> Call:
    """Give the call that changes something, or without any change tells it."""
    if not body and version is not None:
        raise click.UsageError("--if-match belongs to a change")
    return Call(method="PUT" if body else "GET", path=path, body=body or None, version=version)


def read_changes(changes: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Read words such as `breaker.threshold=5`; a value that is no JSON is a text.

    Raises:
        click.UsageError: one has another form, or a field stands twice.
    """
    body: dict[str, dict[str, Any]] = {}
    for word in changes:
        name, is_said, text = word.partition("=")
        section, _, field = name.partition(".")
        if not (is_said and section and field):
            raise click.UsageError(f"write a field and its value, such as {EXAMPLE}; got {word}")
        fields = body.setdefault(section, {})
        if field in fields:
            raise click.UsageError(f"{name} is given twice")
        try:
            fields[field] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            fields[field] = text
    return body


def show_thresholds(document: Any) -> None:
    """Print thresholds for people, as they are written to change them."""
    for section, fields in document.items():
        if isinstance(fields, Mapping):
            print_fields(fields, f"{section}.")
    click.echo(f"config_version {document['config_version']}")


def show_gate(document: Any) -> None:
    """Print what a combo takes for an answer, as it is written to change it."""
    print_fields(document[GATE])
    click.echo(f"config_version {document['config_version']}")


def print_fields(fields: Mapping[str, Any], head: str = "") -> None:
    """Print fields, a line each."""
    for field, value in fields.items():
        click.echo(f"{head}{field}={msgspec.json.encode(value).decode()}")


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
