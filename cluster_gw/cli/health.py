"""`cluster-gw health`: what checks said of keys, and checking them now."""

from types import MappingProxyType
from typing import Any, Final

import click

from cluster_gw.cli.calling import Call
from cluster_gw.cli.options import config_option, json_option
from cluster_gw.cli.tables import print_lines, print_rows, tell

COLUMNS: Final = MappingProxyType(
    {
        "key": "key",
        "provider": "provider",
        "status": "status",
        "is_used": "used",
        "last_check": "last check",
        "rejections": "rejections",
        "reason": "reason",
    }
)
PENALTIES: Final = MappingProxyType(
    {
        "route": "route",
        "reasons": "why",
        "penalty.value": "points",
        "benched_until_ms": "benched until (ms)",
        "recent_error_count": "errors",
    }
)


@click.group("health", short_help="Tell how keys and routes are; check them.")
def command() -> None:
    """Tell what is known of keys and routes; check or forget it."""


@command.command("keys", short_help="List keys with what checks said of them.")
@config_option
@json_option
def keys(config: str | None, *, as_json: bool) -> int:
    """List keys, as `GET /api/health` does."""
    return tell(config, Call(path="/api/health"), show, as_json=as_json)


@command.command("routes", short_help="List routes against which anything is held.")
@config_option
@click.option("--combo", metavar="ID", help="Of this combo; else the default one.")
@json_option
def routes(config: str | None, combo: str | None, *, as_json: bool) -> int:
    """List routes that rest, are benched or failed, as the penalty inspector does."""
    call = Call(path="/api/fallback/penalty-inspector", query={"combo": combo})
    return tell(config, call, show_routes, as_json=as_json)


@command.command("check", short_help="Have keys checked now.")
@config_option
@click.option("--provider", metavar="NAME", help="Only keys of this provider.")
@click.option("--key", metavar="ID", help="Only this one.")
@json_option
def check(config: str | None, provider: str | None, key: str | None, *, as_json: bool) -> int:
    """Have keys checked by the worker whose task that is, within a second."""
    asked = {"provider": provider, "key": key}
    body = {name: value for name, value in asked.items() if value is not None}
    call = Call(method="POST", path="/api/health/check", body=body)
    return tell(config, call, print_lines, as_json=as_json)


@command.command("forget", short_help="Forget penalties, benches, rests and breakers.")
@config_option
@json_option
def forget(config: str | None, *, as_json: bool) -> int:
    """Forget what is held against all routes, on all workers at once."""
    call = Call(method="DELETE", path="/api/fallback/penalty-inspector")
    return tell(config, call, print_lines, as_json=as_json)


def show(document: Any) -> None:
    """Print keys, and whether the pool is degraded, for people."""
    print_rows(document["items"], COLUMNS, "there are no keys")
    if document["pool"]["degraded"]:
        click.echo(
            f"the pool is degraded: {document['pool']['usable_providers']} of "
            f"{document['pool']['providers']} providers are usable"
        )


def show_routes(document: Any) -> None:
    """Print routes for people."""
    print_rows(document["rows"], PENALTIES, "nothing is held against any route")
