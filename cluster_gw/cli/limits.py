"""`cluster-gw limits`: what the windows of each key count, beside what they allow."""

from types import MappingProxyType
from typing import Any, Final

import click

from cluster_gw.cli.calling import Call
from cluster_gw.cli.options import config_option, json_option
from cluster_gw.cli.tables import print_rows, tell

BOUNDS: Final = ("rpm", "rpd", "tpm", "tpd", "concurrency")
COLUMNS: Final = MappingProxyType(
    {
        "key": "key",
        "provider": "provider",
        "scope": "scope",
        "routes": "routes",
        **{name: name for name in BOUNDS},
    }
)


@click.command("limits", short_help="Tell what is used of the limits of keys.")
@config_option
@json_option
def command(config: str | None, *, as_json: bool) -> int:
    """List the windows of each key, as `GET /api/limits` does; caps are in `--json`."""
    return tell(config, Call(path="/api/limits"), show, as_json=as_json)


def show(document: Any) -> None:
    """Print the windows for people, a line each."""
    rows = [
        {
            **row,
            **window,
            "routes": window["routes"] or "all",
            **{name: used_of(window[name]) for name in BOUNDS},
        }
        for row in document["items"]
        for window in row["windows"]
    ]
    print_rows(rows, COLUMNS, "there are no keys")


def used_of(bound: Any) -> str:
    """What is used of one bound."""
    limit = bound["limit"]
    return f"{bound['used']} of {limit}" if limit is not None else str(bound["used"])
