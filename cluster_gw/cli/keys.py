"""`cluster-gw keys`: the credentials of providers, by their ids."""

from types import MappingProxyType
from typing import Any, BinaryIO, Final
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
        "secret": "secret",
    }
)
PLAIN, STDIN = "the file's", "-"
ENDS: Final = b"\r\n"
MOST_BYTES: Final = 65_536  # what is too long is refused by whoever stores it


@click.group("keys", short_help="List and switch keys of providers.")
def command() -> None:
    """List keys of providers; switch them; give them other secrets; end their rests."""


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


@command.command("rotate", short_help="Give a key another secret, read from stdin or a file.")
@click.argument("key")
@click.option(
    "--secret-file",
    type=click.File("rb"),
    default=STDIN,
    metavar="FILE",
    help="Holds the secret; else it is read from standard input.",
)
@click.option("--revert", is_flag=True, help="Go back to the secret of the configuration file.")
@click.option("--anyway", is_flag=True, help="Although some workers cannot read it.")
@config_option
@version_option
@json_option
def rotate(
    key: str,
    secret_file: BinaryIO,
    config: str | None,
    *,
    revert: bool,
    anyway: bool,
    if_match: int | None,
    as_json: bool,
) -> int:
    """Give a key another secret, on all workers; requests under way end with the old one.

    It is stored encrypted in Redis, under GW_MASTER_KEY, which has to be that of the workers.
    """
    if revert:
        call = Call(method="DELETE", path=path_of(key, "/secret"), version=if_match)
        return tell(config, call, show_replaced, as_json=as_json)
    body = {"secret": read_secret(secret_file), "anyway": anyway}
    call = Call(method="PUT", path=path_of(key, "/secret"), body=body, version=if_match)
    return tell(config, call, show_replaced, as_json=as_json)


@command.command("reseal", short_help="Encrypt secrets anew, under the present master key.")
@config_option
@version_option
@json_option
def reseal(config: str | None, *, if_match: int | None, as_json: bool) -> int:
    """Encrypt all secrets that were set at run time under the present GW_MASTER_KEY.

    GW_MASTER_KEY_PREVIOUS has to be the one before; workers need it no more afterwards.
    """
    call = Call(method="POST", path="/api/key-secrets/reseal", version=if_match)
    return tell(config, call, print_lines, as_json=as_json)


def read_secret(source: BinaryIO) -> str:
    """Read a secret, never from an argument: those are seen by everybody on the machine.

    Raises:
        UsageError: it is empty, or no text.
    """
    if source.isatty():
        text: str = click.prompt("Secret", hide_input=True, err=True)
        return text
    try:
        text = source.read(MOST_BYTES).rstrip(ENDS).decode("ascii")
    except UnicodeDecodeError:
        raise click.UsageError("the secret holds characters that no credential has") from None
    if not text:
        raise click.UsageError("the secret is empty")
    return text


def path_of(key: str, more: str = "") -> str:
    """The path of a key."""
    return f"/api/keys/{quote(key, safe='')}{more}"


def show(document: Any) -> None:
    """Print keys for people."""
    rows = [
        {**item, "models": item["models"] or "all", "secret": secret_of(item)}
        for item in document["items"]
    ]
    print_rows(rows, COLUMNS, "there are no keys")


def secret_of(item: dict[str, Any]) -> str:
    """Which secret of a key holds."""
    if item["secret_problem"] is not None:
        return f"{PLAIN} ({item['secret_problem']})"
    return PLAIN if item["secret_set_at_ms"] is None else "set at run time"


def show_replaced(document: Any) -> None:
    """Print what came of another secret; nothing of the secret."""
    if "taken_by" not in document:
        print_lines(document)
        return
    click.echo(f"{document['id']}: {secret_of(document)}")
    click.echo(f"workers that have it: {len(document['taken_by'])}")
    for name, text in (
        ("waiting_for", "workers that did not say so within 3 s"),
        ("unread_by", "workers that cannot read it and go on with the file's"),
    ):
        if document[name]:
            click.echo(f"{text}: {', '.join(document[name])}")
    if document["check_ordered"]:
        click.echo("its provider is asked about it now: cluster-gw health")
