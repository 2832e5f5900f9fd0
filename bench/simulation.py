"""The whole sweep: does the bandit lose less than usual strategies, and do many workers act as one?

`make sim` writes bench/results/simulation.md and docs/convergence.png anew; it takes a core for
half an hour.
"""

import importlib
import sys
from pathlib import Path
from typing import Final

import click

from cluster_gw.simulation.convergence import compare
from cluster_gw.simulation.pool import BANDIT, BASELINES, COMPARED, PLAIN
from cluster_gw.simulation.reading import find, list_bundled, read_scenario
from cluster_gw.simulation.report import in_markdown, regrets_in_markdown, table, turns_in_markdown
from cluster_gw.simulation.scenario import Scenario
from cluster_gw.simulation.sweep import Outcome, sweep
from cluster_gw.store.scripts import Scripts, load_scripts

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "bench" / "results" / "simulation.md"
PICTURE: Final = ROOT / "docs" / "convergence.png"
WORKERS: Final = 3
FEW, MANY = 1, 8
FULL_USE: Final = 0.85
INTRO: Final = """# Simulation: results

Written by `make sim`; what the columns say: [docs/simulation.md](../../docs/simulation.md).
"""


@click.command()
@click.option("--seeds", type=int, default=20, show_default=True)
@click.option("--few", type=int, default=5, show_default=True, help="Seeds of the side shows.")
def main(seeds: int, few: int) -> None:
    """Run everything and write the results."""
    plots = importlib.import_module("cluster_gw.cli.plots")  # of an extra: fails before the work
    scripts = load_scripts()
    outcomes, plain, fleets = [], [], []
    for name in list_bundled():
        scenario = read_scenario(find(name))
        outcomes.append(sweep(scenario, COMPARED, seeds=seeds, replicas=WORKERS, scripts=scripts))
        others = (BANDIT, *(f"{PLAIN}{one}" for one in BASELINES))
        plain.append(sweep(scenario, others, seeds=seeds, replicas=WORKERS, scripts=scripts))
        fleets.append(fleets_of(scenario, few, scripts))
        print(regrets_in_markdown(outcomes[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    turns = compare(seeds=seeds, scripts=scripts)
    plots.draw_turns(turns, PICTURE)
    parts = [
        INTRO,
        verdict(outcomes, plain),
        regrets_in_markdown(outcomes),
        PLAIN_INTRO,
        regrets_in_markdown(plain),
        "## One worker and eight\n\n" + table(FLEETS, [row for rows in fleets for row in rows]),
        "## Away from a provider that falls\n\nFrom 99 % to 20 % of calls that go well, at 20 "
        "requests a second; in the mean of all seeds.\n\n" + turns_in_markdown(turns),
        "![share of requests that try it](../../docs/convergence.png)\n",
        in_markdown(outcomes),
    ]
    RESULTS.write_text("\n".join(parts), encoding="utf-8")


PLAIN_INTRO: Final = """## Beside gateways that remember nothing

The same orders without limits, rests, breakers and benches: a failure goes on to the next, and
that is all.
"""
FLEETS: Final = ("scenario", "workers", "reward", "served", "wasted", "regret")


def fleets_of(scenario: Scenario, seeds: int, scripts: Scripts) -> list[tuple[str, ...]]:
    """What the bandit comes to with one worker and with eight."""
    rows = []
    for count in (FEW, MANY):
        outcome = sweep(scenario, (BANDIT,), seeds=seeds, replicas=count, scripts=scripts)
        one = outcome.of(BANDIT)
        rows.append(
            (
                outcome.scenario,
                str(count),
                f"{one.reward:.4f}",
                f"{100 * one.success_ratio:.2f} %",
                f"{100 * one.wasted_ratio:.2f} %",
                f"{1000 * one.regret:.2f}",
            )
        )
    return rows


def verdict(outcomes: list[Outcome], plain: list[Outcome]) -> str:
    """In how many scenarios the bandit lost least, and what it wasted where the pool was full."""
    as_usual = sum(
        one.of(BANDIT).regret < min(one.of(f"{PLAIN}{name}").regret for name in BASELINES)
        for one in plain
    )
    won = [one.scenario for one in outcomes if one.beats_all()]
    full = [
        (one.scenario, of_it.pool_use, of_it.wasted_ratio)
        for one in outcomes
        if (of_it := one.of(BANDIT)).pool_use is not None and of_it.pool_use >= FULL_USE
    ]
    wasted = "; ".join(
        f"{name}: {100 * share:.1f} % of calls at {100 * use:.0f} % of the pool"
        for name, use, share in full
    )
    lost = ", ".join(one.scenario for one in outcomes if not one.beats_all()) or "none"
    return (
        f"The bandit's regret is below that of every baseline in {as_usual} of {len(plain)} "
        "scenarios where the baselines are as gateways have them, without the product's limits, "
        f"rests, breakers and benches; and in {len(won)} of {len(outcomes)} (not in: {lost}) where "
        "they have all of these and only the order differs. Wasted where the pool was nearly used "
        f"up: {wasted}.\n"
    )


if __name__ == "__main__":
    main()
