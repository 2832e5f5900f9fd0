"""`cluster-gw status`: which workers there are, and what they do."""

from types import MappingProxyType
from typing import Any, Final

import click

from cluster_gw.cli.calling import Call
from cluster_gw.cli.options import config_option, json_option
from cluster_gw.cli.tables import print_rows, seconds, tell

COLUMNS: Final = MappingProxyType(
    {
        "id": "worker",
        "status": "status",
        "state.in_flight": "in flight",
        "state.config_version": "config",
        "state.snapshot_version": "snapshot",
        "snapshot_age": "its age",
        "state.version": "version",
        "state.host": "host",
        "silent": "heard",
    }
)


@click.command("status", short_help="Tell which workers there are.")
@config_option
@json_option
def command(config: str | None, *, as_json: bool) -> int:
    """List the workers of all groups, as `GET /api/workers` does."""
    return tell(config, Call(path="/api/workers"), show, as_json=as_json)


def show(document: Any) -> None:
    """Print the list for people."""
    rows = []
    for item in document["items"]:
        state = item["state"] or {}
        rows.append(
            {
                **item,
                "status": status_of(item),
                "snapshot_age": seconds(state.get("snapshot_age_ms")),
                "silent": f"{seconds(item['silent_ms'])} ago",
            }
        )
    print_rows(rows, COLUMNS, "no worker was heard within the last hour")


def status_of(item: Any) -> str:
    """What a worker is, by what is known of it."""
    if not item["alive"]:
        return "silent"
    if item["drained_since_ms"] is not None:
        return "draining"
    return item["state"]["status"] if item["state"] else "alive"
