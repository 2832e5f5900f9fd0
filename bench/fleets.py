"""Do eight workers do as one does? Each figure of the same seeds, pair by pair."""

import math
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from cluster_gw.simulation.fleet import Run, simulate
from cluster_gw.simulation.measures import deviation, mean, mean_reward
from cluster_gw.simulation.pool import BANDIT, ORACLE
from cluster_gw.simulation.report import table
from cluster_gw.simulation.scenario import Scenario
from cluster_gw.store.scripts import Scripts

FEW, MANY = 1, 8
MOST: Final = 0.05
"""By how much, as a share, a figure of many workers may differ from that of one."""

Figure = Callable[[Run, Run], float]
FIGURES: Final[Mapping[str, tuple[Figure, float, str]]] = {
    "reward": (lambda run, _: mean_reward(run), 1.0, ""),
    "served": (
        lambda run, _: mean([float(end.latency_s is not None) for end in run.ends]),
        100.0,
        " %",
    ),
    "wasted": (
        lambda run, _: mean([float(call.code is not None) for call in run.calls]),
        100.0,
        " %",
    ),
    "regret": (lambda run, best: mean_reward(best) - mean_reward(run), 1000.0, ""),
}
"""What is compared: how it is worked out of a run and the oracle's, its scale and its unit."""


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of one worker and of many, in the mean of some seeds.

    Attributes:
        scenario: it is of.
        figure: its name.
        few: of one worker.
        many: of many.
        difference: of these, as a share of the first.
        error: standard error of that.
    """

    scenario: str
    figure: str
    few: float
    many: float
    difference: float
    error: float

    def verdict(self) -> str:
        """Whether the two are as near as they have to be, as far as these seeds can tell."""
        if abs(self.difference) <= MOST:
            return "within 5 %"
        return "not told" if abs(self.difference) - 2.0 * self.error <= MOST else "differs"


def fleets_of(scenario: Scenario, seeds: int, scripts: Scripts) -> list[Pair]:
    """Compare all figures of one worker and of many."""
    runs = {
        (count, name): [
            simulate(scenario, name, seed=seed, replicas=count, scripts=scripts)
            for seed in range(seeds)
        ]
        for count in (FEW, MANY)
        for name in (BANDIT, ORACLE)
    }
    found = []
    for figure, (worked_out, _, _) in FIGURES.items():
        few, many = (
            [
                worked_out(run, best)
                for run, best in zip(runs[count, BANDIT], runs[count, ORACLE], strict=True)
            ]
            for count in (FEW, MANY)
        )
        differences = [other - one for one, other in zip(few, many, strict=True)]
        whole = abs(mean(few)) or 1.0
        found.append(
            Pair(
                scenario=scenario.name or "scenario",
                figure=figure,
                few=mean(few),
                many=mean(many),
                difference=mean(differences) / whole,
                error=deviation(differences) / math.sqrt(seeds) / whole,
            )
        )
    return found


def fleets_in_markdown(fleets: list[list[Pair]], seeds: int) -> str:
    """All comparisons: what they come to, and a row for each scenario."""
    every = [pair for pairs in fleets for pair in pairs]
    about = "The figure of one worker, of eight, and the difference with its standard error"
    lines = [f"{about}; {seeds} seeds, the same for both.\n"]
    for figure in FIGURES:
        of_it = [pair for pair in every if pair.figure == figure]
        words = [pair.verdict() for pair in of_it]
        beyond = ", ".join(p.scenario for p in of_it if p.verdict() != "within 5 %") or "none"
        lines.append(
            f"- {figure}: within 5 % in {words.count('within 5 %')} of {len(of_it)}; not told "
            f"from 5 % by twice the standard error in {words.count('not told')}; differs in "
            f"{words.count('differs')} (beyond: {beyond})"
        )
    rows = [(pairs[0].scenario, *[cell(pair) for pair in pairs]) for pairs in fleets]
    return "\n".join(lines) + "\n\n" + table(("scenario", *FIGURES), rows)


def cell(pair: Pair) -> str:
    """A figure twice, and the difference."""
    _, scale, unit = FIGURES[pair.figure]
    digits = 4 if scale == 1.0 else 2
    return (
        f"{scale * pair.few:.{digits}f}{unit} : {scale * pair.many:.{digits}f}{unit}, "
        f"{100 * pair.difference:+.1f} ±{100 * pair.error:.1f} %"
    )
