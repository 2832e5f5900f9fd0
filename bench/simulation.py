"""The whole sweep: does the bandit lose less than usual strategies, and do many workers act as one?

`make sim` writes bench/results/simulation.md and docs/convergence.png anew; it takes a core for
half an hour. It ends with 1 when a claim does not hold.
"""

import importlib
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from bench.drawn import HELD_OUT, draw_scenario
from bench.fleets import fleets_in_markdown, fleets_of
from bench.verdicts import FULL_USE, judge, verdicts_in_markdown
from cluster_gw.settings.sections import RoutingSettings
from cluster_gw.simulation.convergence import compare
from cluster_gw.simulation.pool import BANDIT, BASELINES, COMPARED, PLAIN
from cluster_gw.simulation.reading import find, list_bundled, read_scenario
from cluster_gw.simulation.report import in_markdown, regrets_in_markdown, turns_in_markdown
from cluster_gw.simulation.scenario import Scenario
from cluster_gw.simulation.sweep import Outcome, sweep
from cluster_gw.store.scripts import Scripts, load_scripts

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "bench" / "results" / "simulation.md"
PICTURE: Final = ROOT / "docs" / "convergence.png"
WORKERS: Final = 3
MOST_SEEDS: Final = 4
"""Times as many seeds where it is not told whether workers differ."""
DRAWN_SEEDS: Final = 3
AS_PLAIN: Final = tuple(f"{PLAIN}{one}" for one in BASELINES)
INTRO: Final = """# Simulation: results

Written by `make sim`; what the columns say: [docs/simulation.md](../../docs/simulation.md).
"""
PLAIN_INTRO: Final = """## Beside gateways that remember nothing

The same orders without limits, rests, breakers and benches: a failure goes on to the next, and
that is all.
"""
UNTUNED_INTRO: Final = """## The bandit as it is installed

`balanced` with every default of the product, beside the same baselines.
"""


@click.command()
@click.option("--seeds", type=int, default=20, show_default=True)
@click.argument("scenarios", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def main(seeds: int, scenarios: tuple[str, ...], out: Path) -> None:
    """Run everything and write the results; of named scenarios only, without the picture."""
    plots = importlib.import_module("cluster_gw.cli.plots")  # of an extra: fails before the work
    scripts = load_scripts()
    outcomes, plain, untuned, fleets = [], [], [], []
    for name in scenarios or list_bundled():
        scenario = read_scenario(find(name))
        whole = sweep(
            scenario, (*COMPARED, *AS_PLAIN), seeds=seeds, replicas=WORKERS, scripts=scripts
        )
        outcomes.append(part(whole, COMPARED))
        plain.append(part(whole, (BANDIT, *AS_PLAIN)))
        installed = sweep(
            as_installed(scenario), (BANDIT,), seeds=seeds, replicas=WORKERS, scripts=scripts
        )
        untuned.append(exchanged(outcomes[-1], installed))
        fleets.append(fleets_of(scenario, seeds, scripts, most=MOST_SEEDS * seeds))
        print(regrets_in_markdown(outcomes[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    verdicts = judge(outcomes, fleets, is_whole=not scenarios)
    parts = [
        INTRO,
        verdicts_in_markdown(verdicts),
        verdict(outcomes, plain, untuned),
        regrets_in_markdown(outcomes),
        PLAIN_INTRO,
        regrets_in_markdown(plain),
        UNTUNED_INTRO,
        regrets_in_markdown(untuned),
        "## One worker and eight\n\n" + fleets_in_markdown(fleets, seeds),
    ]
    if not scenarios:
        turns = compare(seeds=seeds, scripts=scripts)
        plots.draw_turns(turns, PICTURE)
        parts += [
            "## Away from a provider that falls\n\nFrom 99 % to 20 % of calls that go well, at 20 "
            "requests a second; in the mean of all seeds.\n\n" + turns_in_markdown(turns),
            "![share of requests that try it](../../docs/convergence.png)\n",
            drawn_in_markdown(scripts),
        ]
    out.write_text("\n".join([*parts, in_markdown(outcomes)]), encoding="utf-8")
    print(verdicts_in_markdown(verdicts))
    if not all(one.holds for one in verdicts):
        sys.exit(1)


def drawn_in_markdown(scripts: Scripts) -> str:
    """How the bandit does in scenarios that were drawn at random, and that nothing was set by."""
    outcomes = [
        sweep(draw_scenario(number), COMPARED, seeds=DRAWN_SEEDS, replicas=WORKERS, scripts=scripts)
        for number in HELD_OUT
    ]
    won = sum(bool(one.beats_all()) for one in outcomes)
    return (
        f"## Drawn at random\n\nLeast regret in {won} of {len(outcomes)} scenarios of "
        f"`bench/drawn.py` by which nothing was set, {DRAWN_SEEDS} seeds each.\n\n"
        + regrets_in_markdown(outcomes)
    )


def as_installed(scenario: Scenario) -> Scenario:
    """A scenario with the product's own strategy and routing where it says nothing of them."""
    return msgspec.structs.replace(scenario, strategy="balanced", routing=RoutingSettings())


def part(outcome: Outcome, strategies: Sequence[str]) -> Outcome:
    """An outcome with the oracle and some of its strategies."""
    kept = [one for one in outcome.measures[1:] if one.strategy in strategies]
    return msgspec.structs.replace(outcome, measures=[outcome.measures[0], *kept])


def exchanged(outcome: Outcome, other: Outcome) -> Outcome:
    """An outcome with the bandit of another one."""
    measures = [other.of(BANDIT) if one.strategy == BANDIT else one for one in outcome.measures]
    return msgspec.structs.replace(outcome, measures=measures)


def verdict(outcomes: list[Outcome], plain: list[Outcome], untuned: list[Outcome]) -> str:
    """In how many scenarios the bandit lost least, and what it wasted where the pool was full."""
    as_usual = sum(
        one.of(BANDIT).regret < min(one.of(name).regret for name in AS_PLAIN) for one in plain
    )
    won = [one.scenario for one in outcomes if one.beats_all()]
    margins = [
        f"{one.scenario} {difference:.2f} ±{deviation:.2f}"
        for one in outcomes
        for difference, deviation in [margin(one)]
        if difference < 2.0 * deviation
    ]
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
        "they have all of these and only the order differs. Ahead of the next best by less than "
        f"twice the standard error of both: {', '.join(margins) or 'nowhere'}. With every default "
        f"of the product: {sum(bool(one.beats_all()) for one in untuned)} of {len(untuned)}. "
        f"Wasted where the pool was nearly used up: {wasted}.\n"
    )


def margin(outcome: Outcome) -> tuple[float, float]:
    """By how much the bandit is ahead of the next best, in thousandths, and the error of that."""
    own = outcome.of(BANDIT)
    best = min((outcome.of(name) for name in BASELINES), key=lambda one: one.regret)
    deviation = math.hypot(own.regret_deviation, best.regret_deviation)
    return 1000.0 * (best.regret - own.regret), 1000.0 * deviation


if __name__ == "__main__":
    main()
