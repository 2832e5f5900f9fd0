"""A scenario is read as it stands, or every fault of it is told with its path."""

from pathlib import Path

import pytest

from cluster_gw.core.routing.headroom import HeadroomPolicy
from cluster_gw.errors import ConfigInvalidError
from cluster_gw.simulation.convergence import read_fall
from cluster_gw.simulation.pool import BANDIT, build_pool, check_strategy, known_strategies
from cluster_gw.simulation.reading import find, list_bundled, parse_scenario, read_scenario
from cluster_gw.simulation.scenario import TUNED
from cluster_gw.store.scripts import load_scripts

BROKEN = """
asking: {requests: 0, duration: 60}
strategy: balanceed
providers:
  - {name: ada, reliability: 1.5, tokens_per_s: [{at_s: 10, value: 5}, {at_s: 5, value: 6}]}
  - {name: ada, tier: Largee, outages: [{from_s: 9, to_s: 9}]}
  - {name: bob, flapping: {period_s: 10, down_s: 10}, limits: {rpmm: 3}}
"""
FIRST = [
    'asking.duration: unknown field "duration"; did you mean "duration_s"?',
    "asking.requests: expected a whole number from 1 to 1000000, got 0",
    "providers[0].reliability: expected a number from 0 to 1, got 1.5",
    'providers[2].limits.rpmm: unknown field "rpmm"; did you mean "rpm"?',
]
THEN = [
    'strategy: unknown "balanceed"; did you mean "balanced"?',
    "providers[0].tokens_per_s[1].at_s: is before the point above it",
    'providers[1].name: "ada" stands twice',
    'providers[1].tier: unknown "Largee"; did you mean "Large"?',
    "providers[1].outages[0]: ends before it begins",
    "providers[2].flapping.down_s: must be below period_s: it would be down for good",
]


def faults(text: str) -> list[str]:
    with pytest.raises(ConfigInvalidError) as caught:
        parse_scenario(text.encode(), "broken")
    return list(caught.value.faults)


def test_every_fault_of_a_field_is_told_with_its_path_and_the_nearest_name() -> None:
    assert sorted(faults(BROKEN)) == sorted(FIRST)


def test_what_no_single_field_can_tell_is_told_once_the_fields_are_right() -> None:
    mended = BROKEN.replace("requests: 0, duration: 60", "requests: 5")
    mended = mended.replace("1.5", "0.5").replace("limits: {rpmm: 3}", "limits: {rpm: 3}")

    assert faults(mended) == THEN


def test_a_file_that_is_not_there_is_told_with_the_nearest_name_that_comes_along() -> None:
    with pytest.raises(ConfigInvalidError) as caught:
        read_scenario(find("stead"))

    assert caught.value.faults == (
        'scenario file stead does not exist: unknown "stead"; did you mean "steady"?',
    )


def test_faults_of_a_file_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("providers: []")

    with pytest.raises(ConfigInvalidError) as caught:
        read_scenario(file)

    assert caught.value.faults == (f"{file}: providers: at least one is needed",)


def test_a_provider_must_be_there_from_the_start() -> None:
    assert faults("providers: [{name: ada, opens_at_s: 5}]") == [
        "providers: at least one must be there from the start (opens_at_s: 0)"
    ]


def test_what_is_not_simulated_is_refused() -> None:
    assert faults("providers: [{name: ada}]\nrouting: {queue: {max_wait_ms: 5}}") == [
        "routing.queue.max_wait_ms: waiting for capacity is not simulated; leave it 0"
    ]


def test_ten_scenarios_come_along_and_can_be_read() -> None:
    names = list_bundled()

    assert len(names) == 10
    assert [read_scenario(find(name)).name for name in names] == list(names)
    assert read_fall().name == "convergence"


def test_a_strategy_nobody_knows_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigInvalidError) as caught:
        check_strategy("bandi")

    assert caught.value.faults == ('--strategies: unknown "bandi"; did you mean "bandit"?',)
    assert "classic:p2c" in known_strategies()


def test_what_a_scenario_does_not_say_of_routing_is_set_for_the_reward() -> None:
    told = parse_scenario(
        b"providers: [{name: ada}]\nrouting: {breaker: {threshold: 5}, headroom: {}}", "mine"
    )
    silent = parse_scenario(b"providers: [{name: ada}]", "mine")

    assert silent.routing == TUNED
    assert told.routing.breaker.threshold == 5
    assert told.routing.headroom == HeadroomPolicy()
    assert told.routing.first_byte_share == TUNED.first_byte_share == 0.0
    assert told.routing.explore_unmeasured == TUNED.explore_unmeasured > 0.0


@pytest.mark.parametrize(
    ("strategy", "weights"),
    [
        ("{}", (0.2, 0.8, 0.0)),
        ("{strategy: balanced}", (0.5, 0.25, 0.25)),
        ("{weights: {intelligence: 1, speed: 1}}", (0.0, 0.5, 0.5)),
    ],
)
def test_the_bandit_weighs_as_the_scenario_says_or_as_the_reward_pays(
    strategy: str, weights: tuple[float, ...]
) -> None:
    document = strategy.replace("{", "{providers: [{name: ada}], ", 1)
    scenario = parse_scenario(document.encode(), "mine")

    pool = build_pool(scenario, scenario.providers, BANDIT, load_scripts())

    ((_, resolved),) = pool.combos
    assert resolved.scoring.plain == pytest.approx(weights)
