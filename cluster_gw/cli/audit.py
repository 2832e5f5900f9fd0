"""`cluster-gw audit`: what was changed, by whom and from where."""

import datetime as dt
from types import MappingProxyType
from typing import Any, Final

import click

from cluster_gw.cli.calling import Call
from cluster_gw.cli.options import config_option, json_option
from cluster_gw.cli.tables import print_rows, tell

MS_PER_S: Final = 1000
COLUMNS: Final = MappingProxyType(
    {
        "at": "when (UTC)",
        "actor": "who",
        "address": "from",
        "method": "did",
        "what": "what",
        "fields": "fields",
        "status": "status",
        "versions": "version",
    }
)


@click.command("audit", short_help="Tell what was changed, and by whom.")
@config_option
@click.option("--limit", type=click.IntRange(1, 2000), default=50, show_default=True)
@json_option
def command(config: str | None, limit: int, *, as_json: bool) -> int:
    """List the newest changes made through the admin API or here, the latest first."""
    return tell(config, Call(path="/api/audit", query={"limit": str(limit)}), show, as_json=as_json)


def show(document: Any) -> None:
    """Print changes for people."""
    rows = [
        {**item, "at": moment(item["at_ms"]), "what": what(item), "versions": versions(item)}
        for item in document["items"]
    ]
    print_rows(rows, COLUMNS, "nothing was changed yet")


def moment(at_ms: int) -> str:
    """Give a time as people read it."""
    found = dt.datetime.fromtimestamp(at_ms / MS_PER_S, tz=dt.UTC)
    return found.strftime("%Y-%m-%d %H:%M:%S")


def versions(item: Any) -> str:
    """Tell from which version of the configuration to which; one where it is the same."""
    after, before = item["config_version"], item["config_version_before"]
    return str(after) if before in {None, after} else f"{before} to {after}"


def what(item: Any) -> str:
    """Tell what was called, and what its body named."""
    path, about = item["path"], item["about"]
    return f"{path} ({about})" if about else str(path)
