"""How soon a fleet turns away from a provider that has just become bad.

With everything that the product has, and by learning alone: without breakers, benches and points.
"""

from pathlib import Path
from typing import Final

import msgspec

from cluster_gw.core.limits.bench import BenchPolicy
from cluster_gw.core.limits.breaker import BreakerPolicy
from cluster_gw.core.limits.penalty import PenaltyPolicy
from cluster_gw.settings.sections import RoutingSettings
from cluster_gw.simulation.fleet import Run, simulate
from cluster_gw.simulation.measures import mean
from cluster_gw.simulation.pool import BANDIT
from cluster_gw.simulation.reading import read_scenario
from cluster_gw.simulation.scenario import Scenario
from cluster_gw.store.scripts import Scripts

FILE: Final = Path(__file__).parent / "convergence.yaml"
FALLS_S: Final = 60.0
WITHIN_S: Final = 6.0
UNTIL_S: Final = 20.0  # after the fall: before a breaker that opened at once lets a trial through
BEFORE_S: Final = 20.0
LEARNS_ALONE: Final = RoutingSettings(
    breaker=BreakerPolicy(threshold=10**9),
    bench=BenchPolicy(failures=100),
    penalty=PenaltyPolicy(rate_limit=0.0, failure=0.0),
)


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """How a fleet turned away, in the mean of some seeds.

    Attributes:
        name: what it had.
        replicas: workers.
        moved_ratio: of the traffic the provider had before, what it no longer had from 6 s on.
        wasted: calls without an answer of the provider, until 6 s after its fall.
        wasted_in_all: the same until the end of the run.
        shares: of requests that the provider was called for, for each second of the run.
    """

    name: str
    replicas: int
    moved_ratio: float
    wasted: float
    wasted_in_all: float
    shares: list[float]


def read_fall() -> Scenario:
    """The scenario."""
    return read_scenario(FILE)


def turn_away(
    scenario: Scenario, name: str, *, replicas: int, seeds: int, scripts: Scripts
) -> Turn:
    """Run the scenario and measure."""
    runs = [
        simulate(scenario, BANDIT, seed=seed, replicas=replicas, scripts=scripts)
        for seed in range(seeds)
    ]
    fallen = scenario.providers[0].name
    before = mean([share(run, fallen, FALLS_S - BEFORE_S, FALLS_S) for run in runs])
    after = mean([share(run, fallen, FALLS_S + WITHIN_S, FALLS_S + UNTIL_S) for run in runs])
    seconds = range(int(scenario.asking.duration_s))
    end_s = scenario.asking.duration_s
    return Turn(
        name=name,
        replicas=replicas,
        moved_ratio=1.0 - after / before,
        wasted=mean([wasted(run, fallen, FALLS_S + WITHIN_S) for run in runs]),
        wasted_in_all=mean([wasted(run, fallen, end_s) for run in runs]),
        shares=[mean([share(run, fallen, at_s, at_s + 1) for run in runs]) for at_s in seconds],
    )


def compare(*, seeds: int, scripts: Scripts) -> list[Turn]:
    """Six workers and one with everything, and six that only learn."""
    scenario = read_fall()
    alone = msgspec.structs.replace(scenario, routing=LEARNS_ALONE)
    return [
        turn_away(scenario, "health and learning", replicas=6, seeds=seeds, scripts=scripts),
        turn_away(scenario, "health and learning", replicas=1, seeds=seeds, scripts=scripts),
        turn_away(alone, "learning alone", replicas=6, seeds=seeds, scripts=scripts),
    ]


def share(run: Run, provider: str, from_s: float, to_s: float) -> float:
    """The share of requests in a time that a provider was called for."""
    asked = sum(from_s <= end.at_s < to_s for end in run.ends)
    called = sum(call.provider == provider and from_s <= call.began_s < to_s for call in run.calls)
    return called / asked if asked else 0.0


def wasted(run: Run, provider: str, until_s: float) -> int:
    """Calls of a provider without an answer that began from its fall until an instant."""
    return sum(
        call.provider == provider and call.code is not None and FALLS_S <= call.began_s < until_s
        for call in run.calls
    )
