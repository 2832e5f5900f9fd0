"""A quick sample of what the whole sweep shows, and how fleets turn away from what fell."""

from typing import Final

import msgspec

from cluster_gw.simulation.convergence import compare
from cluster_gw.simulation.pool import COMPARED
from cluster_gw.simulation.reading import find, read_scenario
from cluster_gw.simulation.report import in_markdown, regrets_in_markdown, turns_in_markdown
from cluster_gw.simulation.scenario import Scenario
from cluster_gw.simulation.sweep import BINS, sweep
from cluster_gw.store.scripts import load_scripts

SCRIPTS: Final = load_scripts()


def shorter(scenario: Scenario) -> Scenario:
    asking = msgspec.structs.replace(scenario.asking, requests=1500)
    return msgspec.structs.replace(scenario, asking=asking)


def test_the_bandit_has_less_regret_than_every_baseline_in_a_sample() -> None:
    ran: list[None] = []
    outcomes = [
        sweep(
            shorter(read_scenario(find(name))),
            COMPARED,
            seeds=2,
            replicas=2,
            scripts=SCRIPTS,
            on_run=lambda: ran.append(None),
        )
        for name in ("fast-but-flaky", "drift")
    ]

    assert [outcome.beats_all() for outcome in outcomes] == [True, True]
    assert len(ran) == 2 * 2 * (len(COMPARED) + 1)
    assert {len(course.regret) for course in outcomes[0].courses} == {BINS}
    assert "| fast-but-flaky | **" in regrets_in_markdown(outcomes)
    assert "## drift: 1500 requests in 3600 s, 2 seeds, 2 workers" in in_markdown(outcomes)


def test_six_workers_leave_a_provider_that_fell_within_six_seconds_as_one_does() -> None:
    six, one, learning = compare(seeds=2, scripts=SCRIPTS)

    assert six.moved_ratio >= 0.9
    assert six.wasted <= one.wasted + 5
    assert learning.moved_ratio < six.moved_ratio  # what was learned comes with the next snapshots
    assert "learning alone" in turns_in_markdown([six, one, learning])
