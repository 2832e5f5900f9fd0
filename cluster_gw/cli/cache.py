"""`cluster-gw cache`: the response cache from the command line."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, BinaryIO

import click
import msgspec

from cluster_gw.app.inspection import Inspection, visit
from cluster_gw.cli.options import config_option, json_option
from cluster_gw.cli.redis import redis_url
from cluster_gw.core.cache_key import Keyed, NoKeyError, canonical_form, digest_of
from cluster_gw.errors import ClientFault, ErrorBody, ScriptContractError, StoreLostError
from cluster_gw.server.admin.cache import cache_document
from cluster_gw.server.explaining import surface_of
from cluster_gw.settings import config_path, load
from cluster_gw.settings.shown import show
from cluster_gw.supervisor.failure import ExitCode, StartError


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints.

    Attributes:
        form: what the key is made of.
        digest: the key.
    """

    form: msgspec.Raw
    digest: str


@click.group("cache", short_help="Look at the response cache, or empty it.")
def command() -> None:
    """Look at the response cache, or empty it."""


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


@command.command("stats", short_help="Tell what is stored, and what it was good for.")
@config_option
@json_option
def stats(config: str | None, *, as_json: bool) -> None:
    """Print settings and sums of the cache, as `GET /api/cache` tells them."""
    _print(_visited(config, _stats), as_json=as_json)


@command.command("flush", short_help="Remove stored answers.")
@config_option
@click.option("--client", metavar="ID", help="Only those that this client was given first.")
@click.option("--model", metavar="PROVIDER/MODEL", help="Only those of this model.")
@json_option
def flush(config: str | None, client: str | None, model: str | None, *, as_json: bool) -> None:
    """Remove the stored answers of a client, of a model, of both, or all; print how many."""
    for name, value in (("--client", client), ("--model", model)):
        if value == "":  # a shell variable that is not set must not stand for all
            raise click.BadParameter("is empty", param_hint=name)
    given = {name: one for name, one in (("client", client), ("model", model)) if one is not None}

    async def remove(inspection: Inspection) -> dict[str, Any]:
        _, version = await inspection.settings()
        async with inspection.cache_index() as index:
            return {"removed": await index.flush(**given), **given, "config_version": version}

    _print(_visited(config, remove), as_json=as_json)


async def _stats(inspection: Inspection) -> dict[str, Any]:
    settings, version = await inspection.settings()
    async with inspection.cache_index() as index:
        document = cache_document(show(settings)["cache"], await index.stats())
    return {**document, "config_version": version}


def _visited(
    config: str | None, ask: Callable[[Inspection], Coroutine[Any, Any, dict[str, Any]]]
) -> dict[str, Any]:
    """Ask the cluster something, through Redis.

    Raises:
        StartError: Redis is away, or not as this version writes it.
    """
    loaded = load(config_path(config, os.environ), os.environ)
    url = redis_url(loaded.settings.redis)

    async def asked() -> dict[str, Any]:
        async with visit(loaded, os.environ, url) as inspection:
            return await ask(inspection)

    try:
        return asyncio.run(asked())
    except StoreLostError as fault:
        raise StartError(f"redis: {fault}", ExitCode.DEPENDENCY_UNREACHABLE) from None
    except ScriptContractError as fault:
        raise StartError(str(fault)) from None


def _print(document: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(document))
        return
    width = max(map(len, document))
    for name, value in document.items():
        click.echo(f"{name:<{width}}  {msgspec.json.encode(value).decode()}")
