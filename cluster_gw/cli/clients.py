"""`cluster-gw clients`: apps with keys of their own."""

from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

import click
import msgspec

from cluster_gw.cli.calling import Call
from cluster_gw.cli.options import config_option, json_option, version_option
from cluster_gw.cli.tables import print_lines, print_rows, tell

COLUMNS: Final = MappingProxyType(
    {
        "id": "client",
        "enabled": "enabled",
        "made": "made here",
        "combos": "combos",
        "limits": "limits",
        "fingerprint": "key",
        "previous": "still taken",
    }
)
COUNT: Final = click.IntRange(0)
LIMITS: Final = ("rpm", "tpm", "concurrency", "monthly_tokens", "monthly_usd", "key_share")


@click.group("clients", short_help="Make apps with keys of their own; refuse them.")
def command() -> None:
    """Make clients, change their keys and limits, refuse them."""


def limit_options(function: Any) -> Any:
    """Add the options of what a client may do."""
    for option in (
        click.option("--detail/--no-detail", default=None, help="May ask how it was routed."),
        click.option("--combo", "combos", multiple=True, help="May be named; may be repeated."),
        click.option("--key-share", type=click.FloatRange(0, 1, min_open=True)),
        click.option("--monthly-usd", type=click.FloatRange(0)),
        click.option("--monthly-tokens", type=COUNT),
        click.option("--concurrency", type=COUNT, help="Requests at the same time."),
        click.option("--tpm", type=COUNT, help="Tokens a minute."),
        click.option("--rpm", type=COUNT, help="Requests a minute."),
    ):
        function = option(function)
    return function


def fields_of(options: dict[str, Any]) -> dict[str, Any]:
    """Give the body of a call that sets what was said."""
    limits = {name: options[name] for name in LIMITS if options[name] is not None}
    fields: dict[str, Any] = {"limits": limits} if limits else {}
    if options["combos"]:
        fields["combos"] = list(options["combos"])
    if options["detail"] is not None:
        fields["detail"] = options["detail"]
    return fields


@command.command("list", short_help="List clients.")
@config_option
@json_option
def list_clients(config: str | None, *, as_json: bool) -> int:
    """List clients, those of the file first."""
    return tell(config, Call(path="/api/clients"), show, as_json=as_json)


@command.command("create", short_help="Make a client; prints its key, once.")
@click.argument("client")
@config_option
@limit_options
@version_option
@json_option
def create(
    client: str, config: str | None, *, if_match: int | None, as_json: bool, **options: Any
) -> int:
    """Make a client; the key is shown now and never again."""
    body = {"id": client, **fields_of(options)}
    call = Call(method="POST", path="/api/clients", body=body, version=if_match)
    return tell(config, call, show_key, as_json=as_json)


@command.command("update", short_help="Change limits, combos or detail of a client.")
@click.argument("client")
@config_option
@limit_options
@version_option
@json_option
def update(
    client: str, config: str | None, *, if_match: int | None, as_json: bool, **options: Any
) -> int:
    """Change what is named; the rest stays."""
    fields = fields_of(options)
    if not fields:
        raise click.UsageError("say what to change")
    call = Call(method="PUT", path=path_of(client), body=fields, version=if_match)
    return tell(config, call, print_lines, as_json=as_json)


@command.command("rotate", short_help="Give a client another key; prints it, once.")
@click.argument("client")
@click.option("--grace-s", type=click.FloatRange(0), help="The old one works so long: a day.")
@config_option
@version_option
@json_option
def rotate(
    client: str,
    grace_s: float | None,
    config: str | None,
    *,
    if_match: int | None,
    as_json: bool,
) -> int:
    """Give a client another key; the one before is taken for a while more."""
    body = {} if grace_s is None else {"grace_s": grace_s}
    call = Call(method="POST", path=path_of(client, "/rotate"), body=body, version=if_match)
    return tell(config, call, show_key, as_json=as_json)


@command.command("revoke", short_help="Refuse all keys of a client, for ever.")
@click.argument("client")
@config_option
@version_option
@json_option
def revoke(client: str, config: str | None, *, if_match: int | None, as_json: bool) -> int:
    """Refuse all keys of a client on all workers; requests under way end by themselves."""
    call = Call(method="POST", path=path_of(client, "/revoke"), version=if_match)
    return tell(config, call, print_lines, as_json=as_json)


def _switch(name: str, text: str, *, enabled: bool) -> None:
    """Add the command that has a client be let in, or not."""

    @command.command(name, short_help=text)
    @click.argument("client")
    @config_option
    @version_option
    @json_option
    def switch(client: str, config: str | None, *, if_match: int | None, as_json: bool) -> int:
        body = {"enabled": enabled}
        call = Call(method="PUT", path=path_of(client), body=body, version=if_match)
        return tell(config, call, print_lines, as_json=as_json)

    switch.help = f"{text} Its keys stay what they are."


_switch("enable", "Let a client in again.", enabled=True)
_switch("disable", "Refuse a client for a while.", enabled=False)


@command.command("delete", short_help="Remove a client that was made at run time.")
@click.argument("client")
@config_option
@version_option
@json_option
def delete(client: str, config: str | None, *, if_match: int | None, as_json: bool) -> int:
    """Remove a client that was made at run time; one of the file goes back to what that says."""
    call = Call(method="DELETE", path=path_of(client), version=if_match)
    return tell(config, call, print_lines, as_json=as_json)


def path_of(client: str, more: str = "") -> str:
    """The path of a client."""
    return f"/api/clients/{quote(client, safe='')}{more}"


def show(document: Any) -> None:
    """Print clients for people."""
    rows = [
        {
            **item,
            "limits": limits_of(item["limits"]),
            "previous": [one["fingerprint"] for one in item["previous_keys"]],
        }
        for item in document["items"]
    ]
    print_rows(rows, COLUMNS, "there are no clients")


def limits_of(limits: dict[str, Any]) -> str:
    """Those limits that there are."""
    return ", ".join(f"{name} {value}" for name, value in limits.items() if value is not None)


def show_key(document: Any) -> None:
    """Print a fresh key; nobody can read it later."""
    click.echo(document["key"])
    until = document.get("previous_until_ms")
    note = "" if until is None else f"; the one before is taken until {until} (ms)"
    client = msgspec.json.encode(document["id"]).decode()
    click.echo(f"This key of {client} is shown once{note}.", err=True)
