"""`cluster-gw usage`: requests, tokens, cost and errors from the command line."""

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Final

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cluster_gw.app.engine import wall_ms
from cluster_gw.app.inspection import visit
from cluster_gw.cli.options import config_option, json_option
from cluster_gw.cli.redis import redis_url
from cluster_gw.core.usage import Counts, Sums, families_in
from cluster_gw.errors import ClientFault, ScriptContractError, StoreLostError
from cluster_gw.server.admin.usage import day_at
from cluster_gw.server.usage_report import (
    Question,
    check_size,
    csv_of,
    document,
    plain,
    read_question,
    shown,
)
from cluster_gw.settings import Loaded, config_path, load
from cluster_gw.supervisor.failure import ExitCode, StartError

PIPE_WIDTH: Final = 200
UNKNOWN: Final = "?"
COLUMNS: Final = (
    *("requests", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"),
    *("cost_usd", "errors", "cancelled", "cache_hits"),
)


@click.command("usage", short_help="Tell what was used: requests, tokens, cost, errors.")
@config_option
@click.option("--from", "first", metavar="DAY", help="First day (UTC), as 2026-11-30; a week ago.")
@click.option("--to", "last", metavar="DAY", help="Last day (UTC); today.")
@click.option(
    "--by",
    default="day",
    show_default=True,
    metavar="NAMES",
    help="What to group by: any of client,model,key,day.",
)
@click.option("--client", metavar="ID", help="Only what this client used.")
@click.option("--model", metavar="PROVIDER/MODEL", help="Only what this model was used for.")
@click.option("--key", metavar="ID", help="Only what was used with this key.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of a table.")
@json_option
def command(config: str | None, *, as_csv: bool, as_json: bool, **words: str | None) -> int:
    """Print what was used on some days, from live state in Redis; changes nothing."""
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")
    loaded = load(config_path(config, os.environ), os.environ)
    names = {"first": "from", "last": "to", "by": "group_by"}
    given = [(names.get(name, name), text) for name, text in words.items() if text is not None]
    try:
        question = read_question(given, day_at(wall_ms()))
        sums, unreadable, version = _asked(loaded, question)
        check_size(sums)
    except ClientFault as fault:
        raise StartError(fault.body.message, ExitCode.BAD_CONFIGURATION) from None
    if as_json:
        answer = document(question, sums, unreadable, limit=None)
        click.echo(msgspec.json.encode({**answer, "config_version": version}))
        return ExitCode.OK
    for name in unreadable:
        click.echo(f"{name} cannot be read; what it says is missing here", err=True)
    if as_csv:
        groups = sums.groups()
        families = families_in(counts for _, counts in groups)
        click.echo(csv_of(question.by, groups, families), nl=False)
    else:
        _print(question, sums)
    return ExitCode.FAILED if unreadable else ExitCode.OK


def _asked(loaded: Loaded, question: Question) -> tuple[Sums, Sequence[str], int]:
    url, sums = redis_url(loaded.settings.redis), question.sums()

    async def asked() -> tuple[Sequence[str], int]:
        async with visit(loaded, os.environ, url) as inspection:
            settings, version = await inspection.settings()
            return await inspection.usage(settings, question.days(), sums.add), version

    try:
        unreadable, version = asyncio.run(asked())
    except StoreLostError as fault:
        raise StartError(f"redis: {fault}", ExitCode.DEPENDENCY_UNREACHABLE) from None
    except ScriptContractError as fault:
        raise StartError(str(fault)) from None
    return sums, unreadable, version


def _print(question: Question, sums: Sums) -> None:
    console = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)
    table = Table(title=f"Usage from {question.first} to {question.last} (UTC)", show_footer=True)
    for place, dimension in enumerate(question.by):
        table.add_column(dimension, footer="" if place else "all", overflow="fold")
    for name, cell in zip(COLUMNS, _cells(sums.total), strict=True):
        table.add_column(name.removesuffix("_tokens"), footer=cell, justify="right")
    for parts, counts in sums.groups():
        table.add_row(*(Text(part or "-") for part in parts), *_cells(counts))
    console.print(table)
    if sums.total.unpriced_requests:
        console.print(f"{sums.total.unpriced_requests} requests have no price: not in cost_usd")
    if sums.has_other:
        console.print("_other: clients and models beyond what a day of a key holds")


def _cells(counts: Counts) -> list[str]:
    told = {**shown(counts), "cost_usd": plain(counts)}
    return [UNKNOWN if told[name] is None else str(told[name]) for name in COLUMNS]
