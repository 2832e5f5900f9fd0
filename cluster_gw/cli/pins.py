"""`cluster-gw pins`: where runs and sessions stay."""

from types import MappingProxyType
from typing import Any, Final

import click

from cluster_gw.cli.calling import Call
from cluster_gw.cli.options import config_option, json_option
from cluster_gw.cli.tables import print_lines, print_rows, seconds, tell

COLUMNS: Final = MappingProxyType(
    {
        "combo": "combo",
        "scope": "scope",
        "key": "key",
        "route": "route",
        "requests": "requests",
        "left": "expires in",
        "is_current": "in force",
    }
)
combo_option: Final = click.option("--combo", metavar="ID", help="Only those of a combo.")
scope_option: Final = click.option("--scope", type=click.Choice(["run", "session"]))
key_option: Final = click.option("--key", metavar="HASH", help="Only that of one run or session.")


@click.group("pins", short_help="Tell where runs and sessions stay.")
def command() -> None:
    """Tell where runs and sessions stay, or let them go."""


@command.command("list", short_help="List pins.")
@config_option
@combo_option
@scope_option
@key_option
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@json_option
def list_pins(
    config: str | None,
    combo: str | None,
    scope: str | None,
    key: str | None,
    limit: int,
    *,
    as_json: bool,
) -> int:
    """List pins, as `GET /api/pins` does."""
    query = {"combo": combo, "scope": scope, "key": key, "limit": str(limit)}
    return tell(config, Call(path="/api/pins", query=query), show, as_json=as_json)


@command.command("delete", short_help="Remove pins.")
@config_option
@combo_option
@scope_option
@key_option
@click.option("--all", "is_all", is_flag=True, help="All there are; needed without a bound.")
@json_option
def delete(
    config: str | None,
    combo: str | None,
    scope: str | None,
    key: str | None,
    *,
    is_all: bool,
    as_json: bool,
) -> int:
    """Remove pins; the next request of each run or session goes where it is ranked."""
    query = {"combo": combo, "scope": scope, "key": key}
    if is_all == any(value is not None for value in query.values()):
        raise click.UsageError("say which: --combo, --scope, --key, or --all")
    for name, value in query.items():
        if value == "":  # a shell variable that is not set must not stand for all
            raise click.BadParameter("is empty", param_hint=f"--{name}")
    call = Call(method="DELETE", path="/api/pins", query=query)
    return tell(config, call, print_lines, as_json=as_json)


def show(document: Any) -> None:
    """Print pins for people."""
    rows = [{**item, "left": seconds(item["expires_in_ms"])} for item in document["items"]]
    print_rows(rows, COLUMNS, "there are no pins")
    if not document["complete"]:
        click.echo("there are more: name a combo, or raise --limit")
