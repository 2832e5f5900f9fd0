"""`cluster-gw explain`: where a request would go now, from live state in Redis."""

import asyncio
import os
import sys
from typing import Any, BinaryIO

import click
import msgspec
from rich.console import Console
from rich.table import Table

from cluster_gw.app.inspection import visit
from cluster_gw.cli.options import config_option, json_option
from cluster_gw.cli.redis import redis_url
from cluster_gw.core.routing.explanation import ExplainedRoute, ExplainedSkip, Explanation
from cluster_gw.errors import GatewayError, ScriptContractError, StoreLostError
from cluster_gw.server.explaining import Asked, explain_request
from cluster_gw.settings import Loaded, config_path, load
from cluster_gw.supervisor.failure import ExitCode, StartError

PIPE_WIDTH = 200


@click.command("explain", short_help="Tell where a request would go now, and why.")
@config_option
@click.option(
    "--request",
    "request_file",
    type=click.File("rb"),
    required=True,
    metavar="FILE|-",
    help="The body of the request as a client would send it; - reads standard input.",
)
@click.option("--client", metavar="ID", help="Who asks; anybody without it.")
@click.option("--surface", default="chat", show_default=True, help="Which API it is sent to.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME:VALUE",
    help="A header of the request, such as X-Gw-Session-Id: s1; may be repeated.",
)
@click.option("--sample", is_flag=True, help="Draw as for a real request, instead of means.")
@json_option
def command(
    config: str | None,
    request_file: BinaryIO,
    client: str | None,
    surface: str,
    headers: tuple[str, ...],
    *,
    sample: bool,
    as_json: bool,
) -> int:
    """Tell where a request would go now, and why, from live state in Redis; changes nothing."""
    asked = Asked(
        request=msgspec.Raw(request_file.read()),
        surface=surface,
        client=client,
        headers=dict(map(_header, headers)),
        sample=sample,
    )
    loaded = load(config_path(config, os.environ), os.environ)
    try:
        told = asyncio.run(_explain(loaded, asked))
    except GatewayError as fault:
        raise StartError(
            f"{fault.body.code}: {fault.body.message}", ExitCode.BAD_CONFIGURATION
        ) from None
    except StoreLostError as fault:
        raise StartError(f"redis: {fault}", ExitCode.DEPENDENCY_UNREACHABLE) from None
    except ScriptContractError as fault:
        raise StartError(str(fault)) from None
    if as_json:
        click.echo(msgspec.json.encode(told))
    else:
        show(told, Console(width=None if sys.stdout.isatty() else PIPE_WIDTH))
    return ExitCode.OK


async def _explain(loaded: Loaded, asked: Asked) -> Explanation:
    async with visit(loaded, os.environ, redis_url(loaded.settings.redis)) as inspection:
        return await explain_request(asked, await inspection.scene())


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise click.BadParameter("write NAME:VALUE", param_hint="--header")
    return name.strip(), value.strip()


def show(told: Explanation, console: Console) -> None:
    """Print a document for people."""
    snapshot = told.snapshot
    age = "none yet" if snapshot.age_ms is None else f"{snapshot.version}, {snapshot.age_ms} ms old"
    console.print(
        f"combo {told.combo}: {told.family} {told.strategy}, configuration {told.config_version}, "
        f"snapshot {age}",
        markup=False,
        highlight=False,
    )
    console.print(_ranking(told.ranking))
    if told.skipped:
        console.print(_skipped(told.skipped))


def _ranking(places: tuple[ExplainedRoute, ...]) -> Table:
    table = _table("#", "route", "score", "made of", "keys", "why")
    for place in places:
        score = "-" if place.score is None else f"{place.score:.6f}"
        tried = ", ".join(
            str(key.id) if key.score is None else f"{key.id} {key.score:.3f}" for key in place.keys
        )
        why = "; ".join((*place.reasons, *(["half-open"] if place.half_open else [])))
        table.add_row(str(place.rank), place.route, score, made_of(place), tried, why)
    return table


def made_of(place: ExplainedRoute) -> str:
    """What a score is made of, a line each: factors, then what they are multiplied with, the rest.

    Nothing where the strategy only orders.
    """
    lines = [f"{one.weight:.3f} x {one.value:.3f} {one.name}" for one in place.factors]
    lines += [f"x {one.value:.3f} {one.name}" for one in place.multipliers]
    lines += [f"{one.delta:+.3f} {one.name}" for one in place.adjustments]
    return "\n".join(lines)


def _skipped(skips: tuple[ExplainedSkip, ...]) -> Table:
    table = _table("not called", "key", "code", "of the", "detail", "until (ms)")
    for skip in skips:
        until = "" if skip.retry_at_ms is None else str(skip.retry_at_ms)
        row: tuple[Any, ...] = (skip.route, skip.key or "all", skip.code, skip.scope, skip.detail)
        table.add_row(*row, until)
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    return table
