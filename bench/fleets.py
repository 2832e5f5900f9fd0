"""Do eight workers do as one does? Each figure of the same seeds, pair by pair.

A pair of runs has the same requests, the same luck at each provider, and the same draws for each
request, whichever worker has it. What is left differs because workers differ.
"""

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
        seeds: of both.
        few: of one worker.
        many: of many.
        difference: of these, as a share of the first.
        error: standard error of that.
    """

    scenario: str
    figure: str
    seeds: int
    few: float
    many: float
    difference: float
    error: float

    def verdict(self) -> str:
        """Whether the two are as near as they have to be, as far as these seeds can tell."""
        if abs(self.difference) <= MOST:
            return "within 5 %"
        return "not told" if abs(self.difference) - 2.0 * self.error <= MOST else "differs"


class Runs(msgspec.Struct):
    """The figures of each seed, by their names: those of one worker, and those of many."""

    few: dict[str, list[float]]
    many: dict[str, list[float]]

    def add(self, scenario: Scenario, seed: int, scripts: Scripts) -> None:
        """Run one more seed; both are held against the same oracle."""
        best = simulate(scenario, ORACLE, seed=seed, replicas=FEW, scripts=scripts)
        for figures, count in ((self.few, FEW), (self.many, MANY)):
            run = simulate(scenario, BANDIT, seed=seed, replicas=count, scripts=scripts)
            for figure, (worked_out, _, _) in FIGURES.items():
                figures[figure].append(worked_out(run, best))


def fleets_of(scenario: Scenario, seeds: int, scripts: Scripts, *, most: int = 0) -> list[Pair]:
    """Compare all figures of one worker and of many.

    Args:
        scenario: of all runs.
        seeds: of it, at least two.
        scripts: the loaded scripts.
        most: seeds to go on to where some figure is beyond what is allowed and may be by chance.
    """
    runs = Runs({name: [] for name in FIGURES}, {name: [] for name in FIGURES})
    done, due = 0, seeds
    while True:
        for seed in range(done, due):
            runs.add(scenario, seed, scripts)
        pairs = [_pair(scenario, figure, runs) for figure in FIGURES]
        if due >= most or all(pair.verdict() != "not told" for pair in pairs):
            return pairs
        done, due = due, min(2 * due, most)


def _pair(scenario: Scenario, figure: str, runs: Runs) -> Pair:
    few, many = runs.few[figure], runs.many[figure]
    differences = [other - one for one, other in zip(few, many, strict=True)]
    whole = abs(mean(few)) or 1.0
    return Pair(
        scenario=scenario.name or "scenario",
        figure=figure,
        seeds=len(few),
        few=mean(few),
        many=mean(many),
        difference=mean(differences) / whole,
        error=deviation(differences) / math.sqrt(len(few)) / whole,
    )


def fleets_in_markdown(fleets: list[list[Pair]], seeds: int) -> str:
    """All comparisons: what they come to, and a row for each scenario."""
    every = [pair for pairs in fleets for pair in pairs]
    about = "The figure of one worker, of eight, and the difference with its standard error"
    how = f"{seeds} seeds or more, with the same requests, luck and draws for both"
    lines = [f"{about}; {how}.\n"]
    for figure in FIGURES:
        of_it = [pair for pair in every if pair.figure == figure]
        words = [pair.verdict() for pair in of_it]
        beyond = ", ".join(p.scenario for p in of_it if p.verdict() != "within 5 %") or "none"
        lines.append(
            f"- {figure}: within 5 % in {words.count('within 5 %')} of {len(of_it)}; not told "
            f"from 5 % by twice the standard error in {words.count('not told')}; differs in "
            f"{words.count('differs')} (beyond: {beyond})"
        )
    rows = [(one[0].scenario, str(one[0].seeds), *[cell(pair) for pair in one]) for one in fleets]
    return "\n".join(lines) + "\n\n" + table(("scenario", "seeds", *FIGURES), rows)


def cell(pair: Pair) -> str:
    """A figure twice, and the difference."""
    _, scale, unit = FIGURES[pair.figure]
    digits = 4 if scale == 1.0 else 2
    return (
        f"{scale * pair.few:.{digits}f}{unit} : {scale * pair.many:.{digits}f}{unit}, "
        f"{100 * pair.difference:+.2f} ±{100 * pair.error:.2f} %"
    )
