"""`cluster-gw simulate`: what the routing makes of a pool that somebody describes."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

import click
import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from cluster_gw.cli.options import json_option
from cluster_gw.errors import ConfigInvalidError
from cluster_gw.simulation.convergence import Turn, compare
from cluster_gw.simulation.pool import BANDIT, COMPARED, build_pool, check_strategy
from cluster_gw.simulation.reading import find, list_bundled, read_scenario
from cluster_gw.simulation.report import (
    COLUMNS,
    cells,
    in_markdown,
    regrets_in_markdown,
    title_of,
    turns_in_markdown,
    use_by_key,
)
from cluster_gw.simulation.scenario import Scenario
from cluster_gw.simulation.sweep import Course, Outcome, sweep
from cluster_gw.store.scripts import Scripts, load_scripts
from cluster_gw.supervisor.failure import ExitCode, StartError

PLOTS: Final = "cluster_gw.cli.plots"
LEGEND: Final = (
    "regret: thousandths of a request's reward that an oracle gets more;\n"
    "served: % of requests; wasted: % of calls; use: % of what limits allow"
)
SHADES: Final = " ▁▂▃▄▅▆▇█"


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `--json` prints and `report.json` holds."""

    outcomes: list[Outcome]
    turns: list[Turn] = []


@click.command("simulate", short_help="Try routing on a described pool, in virtual time.")
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO.yaml …]")
@click.option(
    "--strategies",
    metavar="A,B",
    help=f"What is compared, by default {','.join(COMPARED)}; any strategy of the product is "
    "family:name.",
)
@click.option("--seeds", type=click.IntRange(1, 1000), default=5, show_default=True)
@click.option("--replicas", type=click.IntRange(1, 64), default=3, show_default=True)
@click.option("--out", metavar="DIR", help="Write report.json, report.md and a PNG each there.")
@click.option(
    "--convergence", is_flag=True, help="Also: how soon six workers leave a bad provider."
)
@json_option
def command(
    scenarios: tuple[str, ...],
    strategies: str | None,
    seeds: int,
    replicas: int,
    out: str | None,
    *,
    convergence: bool,
    as_json: bool,
) -> int:
    """Try strategies on described pools, with the real decisions on a virtual clock.

    A scenario is a file, or the name of one that comes along; without any, all of those are run.
    """
    given = COMPARED if strategies is None else map(str.strip, strategies.split(","))
    names = list(dict.fromkeys(given))
    scripts = load_scripts()
    read = read_all(scenarios or list_bundled(), names, scripts)
    directory = None if out is None else _directory(out)
    with progress_of(len(read) * (len(names) + ("oracle" not in names)) * seeds) as on_run:
        outcomes = [
            sweep(one, names, seeds=seeds, replicas=replicas, scripts=scripts, on_run=on_run)
            for one in read
        ]
        turns = compare(seeds=seeds, scripts=scripts) if convergence else []
    report = Report(outcomes=outcomes, turns=turns)
    if directory is not None:
        _write(report, directory)
    if as_json:
        click.echo(msgspec.json.encode(report).decode())
    else:
        show(report)
    return ExitCode.OK


def read_all(names: Sequence[str], strategies: Sequence[str], scripts: Scripts) -> list[Scenario]:
    """Read all scenarios, or tell every fault of all of them."""
    faults: list[str] = []
    found: list[Scenario] = []
    for strategy in strategies:
        try:
            check_strategy(strategy)
        except ConfigInvalidError as error:
            faults += error.faults
    for name in names:
        try:
            scenario = read_scenario(find(name))
        except ConfigInvalidError as error:
            faults += error.faults
            continue
        try:
            build_pool(scenario, scenario.providers, BANDIT, scripts)
        except ConfigInvalidError as error:  # what only the whole configuration tells
            faults += [f"{find(name)}: {line}" for line in error.faults]
        found.append(scenario)
    if faults:
        raise ConfigInvalidError(faults)
    return found


def _directory(out: str) -> Path:
    directory = Path(out)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigInvalidError([f"--out: {out}: {error.strerror}"]) from None
    return directory


@contextmanager
def progress_of(runs: int) -> Iterator[Callable[[], None]]:
    """Show how far it is, on a terminal only."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda: None
        return
    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("runs", total=runs)
        yield lambda: progress.advance(task)


def _write(report: Report, directory: Path) -> None:
    """Write everything.

    Raises:
        StartError: the directory cannot be written to.
    """
    text = regrets_in_markdown(report.outcomes) + "\n" + in_markdown(report.outcomes)
    if report.turns:
        text += "\n" + turns_in_markdown(report.turns)
    plots = _plots()
    try:
        (directory / "report.json").write_bytes(msgspec.json.encode(report))
        (directory / "report.md").write_text(text, encoding="utf-8")
        if plots is None:
            return
        for outcome in report.outcomes:
            plots.draw_outcome(outcome, directory / f"{outcome.scenario}.png")
        if report.turns:
            plots.draw_turns(report.turns, directory / "convergence.png")
    except OSError as error:
        raise StartError(f"cannot write to {directory}: {error.strerror}") from None


def _plots() -> ModuleType | None:
    try:
        return importlib.import_module(PLOTS)
    except ModuleNotFoundError:
        hint = "no pictures: install the extra, `pip install '.[plots]'` in a checkout"
        click.echo(f"warning: {hint}", err=True)
        return None


def show(report: Report) -> None:
    """Print what came of all runs for people."""
    console = Console()
    for outcome in report.outcomes:
        console.print(title_of(outcome), style="bold", highlight=False)
        if outcome.about:
            console.print(outcome.about, highlight=False)
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        for place, column in enumerate(COLUMNS):
            table.add_column(column, justify="right" if place else "left", no_wrap=True)
        for measures in outcome.measures:
            table.add_row(*cells(measures))
        console.print(table)
        console.print(use_by_key(outcome), highlight=False)
        for course in outcome.courses:
            if course.strategy != outcome.courses[0].strategy or len(outcome.courses) == 1:
                _show_course(console, course)
                break
    if report.turns:
        console.print(turns_in_markdown(report.turns))
    console.print(LEGEND, style="dim", highlight=False)


def _show_course(console: Console, course: Course) -> None:
    """Where the calls of a strategy go over time, a line for each provider."""
    width = max(map(len, course.shares))
    console.print(f"calls of {course.strategy} over time, by provider:", style="dim")
    for name, shares in course.shares.items():
        line = "".join(SHADES[round(share * (len(SHADES) - 1))] for share in shares)
        console.print(f"  {name:{width}} │{line}│", highlight=False)
