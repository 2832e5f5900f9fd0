"""`cluster-gw replay`: recorded traffic, asked again of a described pool in virtual time."""

from typing import BinaryIO

import click
import msgspec

from cluster_gw.cli.options import json_option
from cluster_gw.cli.simulate import Report, progress_of, read_all, show
from cluster_gw.simulation.pool import COMPARED, ORACLE
from cluster_gw.simulation.sweep import sweep
from cluster_gw.simulation.traffic import read_traffic
from cluster_gw.store.scripts import load_scripts
from cluster_gw.supervisor.failure import ExitCode


@click.command("replay", short_help="Ask recorded traffic again, in virtual time.")
@click.argument("traffic", type=click.File("rb"), metavar="LOG|-")
@click.argument("scenario", metavar="SCENARIO.yaml")
@click.option("--strategies", metavar="A,B", help="What is compared; see `simulate`.")
@click.option("--seeds", type=click.IntRange(1, 1000), default=3, show_default=True)
@click.option("--replicas", type=click.IntRange(1, 64), default=3, show_default=True)
@json_option
def command(
    traffic: BinaryIO,
    scenario: str,
    strategies: str | None,
    seeds: int,
    replicas: int,
    *,
    as_json: bool,
) -> int:
    """Ask the requests of a log again of the pool that a scenario describes.

    LOG is the gateway's own log in JSON, or a line for each request with at_ms, input_tokens and
    output_tokens. When they came and how large they were is taken from there, all else from the
    scenario.
    """
    given = COMPARED if strategies is None else map(str.strip, strategies.split(","))
    names = list(dict.fromkeys(given))
    scripts = load_scripts()
    [read] = read_all([scenario], names, scripts)
    asked = msgspec.structs.replace(read, asking=read_traffic(traffic, read.asking))
    with progress_of((len(names) + (ORACLE not in names)) * seeds) as on_run:
        outcome = sweep(
            asked, names, seeds=seeds, replicas=replicas, scripts=scripts, on_run=on_run
        )
    report = Report(outcomes=[outcome])
    if as_json:
        click.echo(msgspec.json.encode(report).decode())
    else:
        show(report)
    return ExitCode.OK
