"""Many runs: scenarios, strategies, seeds; and what they came to, for people and programs."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from cluster_gw.simulation.fleet import Run, simulate
from cluster_gw.simulation.measures import Measures, measure
from cluster_gw.simulation.pool import BANDIT, BASELINES, ORACLE
from cluster_gw.simulation.scenario import Scenario
from cluster_gw.store.scripts import Scripts

BINS: Final = 60
"""Points of a course over time."""


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """How one strategy went over time, in the mean of all seeds, at `BINS` even steps.

    Attributes:
        strategy: its name.
        regret: summed up so far, for one run.
        shares: of the calls in each step, by provider; 0 where there were none.
    """

    strategy: str
    regret: list[float]
    shares: dict[str, list[float]]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one scenario.

    Attributes:
        scenario: its name.
        about: it.
        requests: of a run.
        duration_s: of a run.
        seeds: runs of each strategy.
        replicas: workers.
        measures: the oracle first, then strategies in the order in which they were given.
        courses: likewise.
    """

    scenario: str
    about: str
    requests: int
    duration_s: float
    seeds: int
    replicas: int
    measures: list[Measures]
    courses: list[Course]

    def of(self, strategy: str) -> Measures:
        """The measures of a strategy."""
        return next(one for one in self.measures if one.strategy == strategy)

    def beats_all(self) -> bool | None:
        """Whether the bandit's regret is below that of each baseline; None if it was not asked."""
        named = {one.strategy: one.regret for one in self.measures}
        others = [named[name] for name in BASELINES if name in named]
        if BANDIT not in named or not others:
            return None
        return named[BANDIT] < min(others)


def sweep(
    scenario: Scenario,
    strategies: Sequence[str],
    *,
    seeds: int,
    replicas: int,
    scripts: Scripts,
    on_run: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run a scenario with each strategy and seed; the oracle is run beside them.

    Args:
        scenario: checked.
        strategies: names.
        seeds: 0 to one less than this.
        replicas: workers.
        scripts: the loaded scripts.
        on_run: called after each run.
    """
    names = [ORACLE, *(name for name in strategies if name != ORACLE)]
    runs: dict[str, list[Run]] = {}
    for name in names:
        runs[name] = []
        for seed in range(seeds):
            runs[name].append(
                simulate(scenario, name, seed=seed, replicas=replicas, scripts=scripts)
            )
            on_run()
    return Outcome(
        scenario=scenario.name or "scenario",
        about=scenario.about,
        requests=scenario.asking.requests,
        duration_s=scenario.asking.duration_s,
        seeds=seeds,
        replicas=replicas,
        measures=[measure(scenario, name, runs[name], runs[ORACLE]) for name in names],
        courses=[course(scenario, name, runs[name], runs[ORACLE]) for name in names],
    )


def course(scenario: Scenario, strategy: str, runs: Sequence[Run], oracle: Sequence[Run]) -> Course:
    """Tell how runs went over time."""
    step_s = scenario.asking.duration_s / BINS
    lost = [0.0] * BINS
    for run, best in zip(runs, oracle, strict=True):
        for end, at_best in zip(run.ends, best.ends, strict=True):
            lost[_bin(end.at_s, step_s)] += (at_best.reward - end.reward) / len(runs)
    regret, so_far = [], 0.0
    for one in lost:
        so_far += one
        regret.append(so_far)
    counts = {world.name: [0] * BINS for world in scenario.providers}
    for run in runs:
        for call in run.calls:
            counts[call.provider][_bin(call.began_s, step_s)] += 1
    totals = [max(1, sum(of_one[step] for of_one in counts.values())) for step in range(BINS)]
    return Course(
        strategy=strategy,
        regret=regret,
        shares={
            name: [one / total for one, total in zip(of_one, totals, strict=True)]
            for name, of_one in counts.items()
        },
    )


def _bin(at_s: float, step_s: float) -> int:
    return min(int(at_s / step_s), BINS - 1)
