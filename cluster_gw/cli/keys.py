"""`cluster-gw keys`: the credentials of providers, by their ids."""

from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

import click

from cluster_gw.cli.calling import Call
from cluster_gw.cli.options import config_option, json_option, version_option
from cluster_gw.cli.tables import print_lines, print_rows, tell

COLUMNS: Final = MappingProxyType(
    {
        "id": "key",
        "provider": "provider",
        "account": "account",
        "enabled": "enabled",
        "models": "models",
    }
)


@click.group("keys", short_help="List and switch keys of providers.")
def command() -> None:
    """List keys of providers; switch them; end their rests."""


@command.command("list", short_help="List keys, never their secrets.")
@config_option
@json_option
def list_keys(config: str | None, *, as_json: bool) -> int:
    """List keys, as `GET /api/keys` does."""
    return tell(config, Call(path="/api/keys"), show, as_json=as_json)


def _switch(name: str, text: str, *, enabled: bool) -> None:
    """Add the command that has a key be used, or not."""

    @command.command(name, short_help=text)
    @click.argument("key")
    @config_option
    @version_option
    @json_option
    def switch(key: str, config: str | None, *, if_match: int | None, as_json: bool) -> int:
        call = Call(method="PUT", path=path_of(key), body={"enabled": enabled}, version=if_match)
        return tell(config, call, print_lines, as_json=as_json)

    switch.help = text


_switch("enable", "Use a key again, on all workers.", enabled=True)
_switch("disable", "Do not use a key any more, on all workers.", enabled=False)


@command.command("bench", short_help="Have a key rest on all its models.")
@click.argument("key")
@click.option("--for-s", type=click.FloatRange(1, 86_400), default=600, show_default=True)
@config_option
@json_option
def bench(key: str, for_s: float, config: str | None, *, as_json: bool) -> int:
    """Have a key rest, on all workers at once; `unbench` ends that."""
    call = Call(method="POST", path=path_of(key, "/bench"), body={"for_s": for_s})
    return tell(config, call, print_lines, as_json=as_json)


@command.command("unbench", short_help="End the rests of a key on all its models.")
@click.argument("key")
@config_option
@json_option
def unbench(key: str, config: str | None, *, as_json: bool) -> int:
    """Forget rests, their ladders and breakers of a key, on all workers at once."""
    call = Call(method="DELETE", path=path_of(key, "/cooldowns"))
    return tell(config, call, print_lines, as_json=as_json)


def path_of(key: str, more: str = "") -> str:
    """The path of a key."""
    return f"/api/keys/{quote(key, safe='')}{more}"


def show(document: Any) -> None:
    """Print keys for people."""
    rows = [{**item, "models": item["models"] or "all"} for item in document["items"]]
    print_rows(rows, COLUMNS, "there are no keys")
