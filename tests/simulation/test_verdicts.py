"""Each claim of the sweep holds in a cheap sample, and is told when it does not."""

from typing import Final

import msgspec
import pytest

from bench.drawn import HELD_OUT, TO_CHOOSE_BY, draw_scenario
from bench.fleets import FIGURES, Pair, fleets_in_markdown, fleets_of
from bench.verdicts import (
    judge,
    of_figure,
    of_regret,
    of_waste,
    verdicts_in_markdown,
)
from cluster_gw.simulation.measures import Measures
from cluster_gw.simulation.pool import BANDIT, COMPARED
from cluster_gw.simulation.reading import find, read_scenario
from cluster_gw.simulation.scenario import Scenario
from cluster_gw.simulation.sweep import Outcome, sweep
from cluster_gw.store.scripts import load_scripts

SCRIPTS: Final = load_scripts()


def of_hour(name: str, requests: int) -> Scenario:
    """A scenario with fewer requests; an hour is cheaper than a day by its snapshots."""
    scenario = read_scenario(find(name))
    asking = msgspec.structs.replace(scenario.asking, requests=requests)
    return msgspec.structs.replace(scenario, asking=asking)


def used_up() -> Scenario:
    """Half an hour at 90 % of what the limits of all providers allow."""
    scenario = read_scenario(find("tight-day-limits"))
    worlds = tuple(
        msgspec.structs.replace(
            world, limits=msgspec.structs.replace(world.limits, rpd=(world.limits.rpd or 0) // 4)
        )
        for world in scenario.providers
    )
    asking = msgspec.structs.replace(
        scenario.asking, requests=scenario.asking.requests // 4, duration_s=1800.0, day=0.0
    )
    return msgspec.structs.replace(scenario, providers=worlds, asking=asking)


def test_every_claim_holds_in_a_sample() -> None:
    scenarios = [of_hour("fast-but-flaky", 600), of_hour("collapse", 600), used_up()]
    outcomes = [
        sweep(one, strategies, seeds=2, replicas=2, scripts=SCRIPTS)
        for one, strategies in zip(scenarios, (COMPARED, COMPARED, (BANDIT,)), strict=True)
    ]
    fleets = [fleets_of(one, 2, SCRIPTS) for one in scenarios[:2]]

    verdicts = judge(outcomes, fleets)

    told = verdicts_in_markdown(verdicts)
    assert [one.claim for one in verdicts if not one.holds] == [], told
    assert len(verdicts) == 2 + len(FIGURES)
    assert told.count("| holds |") == len(verdicts)
    assert "| collapse | 2 |" in fleets_in_markdown(fleets, 2)


def pair(difference: float, error: float = 0.0) -> Pair:
    return Pair(
        scenario="s",
        figure="wasted",
        seeds=20,
        few=1.0,
        many=1.0 + difference,
        difference=difference,
        error=error,
    )


@pytest.mark.parametrize(
    ("difference", "error", "holds"),
    [(0.05, 0.0, True), (-0.051, 0.0, False), (0.3, 0.1, False), (0.3, 0.13, True)],
)
def test_workers_differ_where_chance_does_not_explain_more_than_a_twentieth(
    difference: float, error: float, holds: bool
) -> None:
    verdict = of_figure("wasted", [pair(0.01), pair(difference, error)])

    assert verdict.holds is holds
    assert f"within in {2 if abs(difference) <= 0.05 else 1} of 2" in verdict.found


def measures(strategy: str, regret: float, use: float | None, wasted: float) -> Measures:
    return Measures(
        strategy=strategy,
        requests=1,
        success_ratio=1.0,
        calls=1,
        wasted_ratio=wasted,
        rate_limited=0,
        reward=1.0,
        regret=regret,
        regret_deviation=0.0,
        p50_s=None,
        p99_s=None,
        pool_use=use,
        cost_usd=0.0,
        calls_by_key={},
    )


def outcome(name: str, regret: float, *, use: float | None = None, wasted: float = 0.0) -> Outcome:
    return Outcome(
        scenario=name,
        about="",
        requests=1,
        duration_s=1.0,
        seeds=1,
        replicas=1,
        measures=[
            measures(one, regret if one == "bandit" else 1.0, use, wasted) for one in COMPARED
        ],
        courses=[],
    )


def test_regret_has_to_be_least_in_nine_of_ten_scenarios() -> None:
    nine = [outcome(f"s{number}", 0.5) for number in range(9)]

    assert of_regret([*nine, outcome("lost", 1.0)]).holds
    assert "not in: lost" in of_regret([*nine, outcome("lost", 1.0)]).found
    assert not of_regret([*nine[:8], outcome("lost", 1.0), outcome("too", 2.0)]).holds


def test_waste_counts_where_the_pool_is_used_up_and_has_to_be_seen_somewhere() -> None:
    well = outcome("well", 0.0, use=0.9, wasted=0.03)

    assert of_waste([well, outcome("idle", 0.0, use=0.2, wasted=0.5)]).holds
    assert not of_waste([well, outcome("full", 0.0, use=0.9, wasted=0.031)]).holds
    few = [outcome("idle", 0.0, use=0.2), outcome("free", 0.0)]
    assert [of_waste(few, is_whole=is_whole).holds for is_whole in (True, False)] == [False, True]


def test_scenarios_that_are_drawn_are_the_same_each_time_and_none_is_used_twice() -> None:
    numbers = (TO_CHOOSE_BY[0], HELD_OUT[0])
    one, other = drawn = [draw_scenario(number) for number in numbers]

    assert drawn == [draw_scenario(number) for number in numbers]
    assert one.providers != other.providers
    assert not set(TO_CHOOSE_BY) & set(HELD_OUT)
