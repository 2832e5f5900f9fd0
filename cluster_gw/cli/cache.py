"""`cluster-gw cache`: the response cache from the command line."""

from typing import BinaryIO

import click
import msgspec

from cluster_gw.cli.options import json_option
from cluster_gw.core.cache_key import Keyed, NoKeyError, canonical_form, digest_of
from cluster_gw.errors import ClientFault, ErrorBody
from cluster_gw.server.explaining import surface_of
from cluster_gw.supervisor.failure import ExitCode, StartError


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints.

    Attributes:
        form: what the key is made of.
        digest: the key.
    """

    form: msgspec.Raw
    digest: str


@click.group("cache", short_help="Look at the response cache.")
def command() -> None:
    """Look at the response cache."""


@command.command("key", short_help="Tell the key of a request, and what it is made of.")
@click.argument("request_file", type=click.File("rb"), metavar="FILE|-")
@click.option("--surface", default="chat", show_default=True, help="Which API it is sent to.")
@click.option("--client", metavar="ID", help="Who asks; without it that of all clients together.")
@json_option
def key(request_file: BinaryIO, surface: str, client: str | None, *, as_json: bool) -> None:
    """Print the canonical form of a request and its digest, a line each.

    The request is taken as it is: bounds of the configuration that would lower its `max_tokens`
    are not asked.
    """
    try:
        codec = surface_of(surface)
    except ClientFault as fault:
        raise StartError(fault.body.message, ExitCode.BAD_CONFIGURATION) from None
    request = codec.decode_request(request_file.read())
    if isinstance(request, ErrorBody):
        raise StartError(f"{request.code}: {request.message}", ExitCode.BAD_CONFIGURATION)
    try:
        form = canonical_form(Keyed(surface=codec.kind, request=request, client=client))
    except NoKeyError as error:
        raise StartError(f"no key: {error}", ExitCode.BAD_CONFIGURATION) from None
    digest = digest_of(form)
    if as_json:
        click.echo(msgspec.json.encode(Key(form=msgspec.Raw(form), digest=digest)))
    else:
        click.echo(form)
        click.echo(digest)
