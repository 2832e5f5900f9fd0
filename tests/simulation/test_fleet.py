"""A run follows its scenario, its seed and the product's own rules."""

from typing import Any, Final

import msgspec
import pytest

from cluster_gw.simulation.fleet import Run, simulate
from cluster_gw.simulation.measures import mean, mean_reward
from cluster_gw.simulation.reading import parse_scenario
from cluster_gw.simulation.scenario import Scenario
from cluster_gw.store.scripts import load_scripts

SCRIPTS: Final = load_scripts()


def scenario(*providers: dict[str, Any], requests: int = 200, **fields: Any) -> Scenario:
    asking = {"requests": requests, "duration_s": 600, **fields.pop("asking", {})}
    document = {"asking": asking, "providers": list(providers), "jitter": 0.0, **fields}
    return parse_scenario(msgspec.json.encode(document), "test")


def run(of: Scenario, strategy: str = "bandit", *, seed: int = 0, replicas: int = 2) -> Run:
    return simulate(of, strategy, seed=seed, replicas=replicas, scripts=SCRIPTS)


def codes(of: Run) -> set[str | None]:
    return {call.code for call in of.calls}


def served(of: Run) -> float:
    return mean([float(end.latency_s is not None) for end in of.ends])


def test_the_same_seed_gives_the_same_run_and_another_one_another() -> None:
    described = scenario({"name": "a", "reliability": 0.8}, {"name": "b", "reliability": 0.9})

    assert run(described) == run(described)
    assert run(described) != run(described, seed=1)


def test_strategies_meet_the_same_requests_with_the_same_luck() -> None:
    described = scenario({"name": "a", "reliability": 0.7})

    one, other = run(described, "bandit"), run(described, "random")

    assert [end.at_s for end in one.ends] == [end.at_s for end in other.ends]
    assert one.calls == other.calls


def test_a_request_goes_on_to_the_next_provider_and_a_waste_costs_a_twentieth() -> None:
    described = scenario(
        {"name": "dead", "reliability": 0.0, "failing": {"after_ms": 0}},
        {"name": "well", "first_byte_ms": 1, "tokens_per_s": 1e6, "spread": 0.0},
        requests=1,
        shuffle=False,
    )

    (end,) = run(described, "priority").ends

    assert (end.provider, end.attempts, end.wasted) == ("well", 2, 1)
    assert end.reward == pytest.approx(0.95, abs=1e-3)


def test_limits_that_are_known_are_never_answered_429_however_much_is_asked() -> None:
    limits = {"rpm": 3, "rpd": 20, "tpm": 4000}
    described = scenario({"name": "a", "keys": 2, "limits": limits}, requests=400)

    got = run(described, replicas=4)

    assert codes(got) == {None}
    assert len(got.calls) == 40
    assert served(got) == 0.1


def test_limits_of_a_declared_account_hold_for_its_keys_together() -> None:
    described = scenario(
        {"name": "a", "keys": 4, "shared_account": True, "limits": {"rpm": 5}}, requests=400
    )

    got = run(described)

    assert codes(got) == {None}
    assert len(got.calls) <= 55
    assert len({call.key for call in got.calls}) == 4


def test_a_limit_nobody_told_is_answered_429_and_the_key_rests() -> None:
    described = scenario({"name": "a", "enforced": {"rpm": 5}}, requests=400)

    got = run(described)

    assert codes(got) == {None, "rate_limited"}
    limited = [call.at_s for call in got.calls if call.code]
    assert all(later - one >= 59 for one, later in zip(limited, limited[5:], strict=False))


def test_a_breaker_opens_for_all_workers_at_once() -> None:
    described = scenario({"name": "a", "reliability": 0.0}, requests=400)

    got = run(described, "priority", replicas=8)

    assert len(got.calls) < 30  # three, what was under way, then one each half a minute


def test_a_provider_that_is_added_later_is_not_called_before() -> None:
    described = scenario(
        {"name": "a"},
        {"name": "new", "opens_at_s": 300, "tokens_per_s": 500},
        requests=400,
        routing={"explore_unmeasured": 0.1},  # what never fails is left for nothing else
    )

    got = run(described)

    calls = [call for call in got.calls if call.provider == "new"]
    assert min(call.began_s for call in calls) >= 300
    assert len(calls) > 100


def test_a_calendar_day_ends_with_all_it_counted() -> None:
    described = scenario(
        {"name": "a", "limits": {"rpd": 10}, "day_reset": "UTC"},
        requests=300,
        asking={"duration_s": 2 * 86_400},
    )

    assert len(run(described).calls) == 20


def test_the_oracle_loses_no_traffic_to_an_outage() -> None:
    described = scenario(
        {"name": "a", "tokens_per_s": 200, "outages": [{"from_s": 200, "to_s": 400}]},
        {"name": "b"},
    )

    got = run(described, "oracle")

    assert codes(got) == {None}
    assert {call.provider for call in got.calls if 200 <= call.began_s < 400} == {"b"}


def test_nobody_beats_the_oracle_where_nothing_is_scarce() -> None:
    described = scenario(
        {"name": "a", "reliability": 0.7, "tokens_per_s": 90, "failing": {"kind": "timeout"}},
        {"name": "b", "reliability": 0.95, "tokens_per_s": 60},
        requests=1500,
    )
    best = mean_reward(run(described, "oracle"))

    for name in ("bandit", "round-robin", "random", "least-latency", "priority", "weighted"):
        assert mean_reward(run(described, name)) <= best + 0.005


@pytest.mark.parametrize("kind", ["status", "cut", "timeout", "empty"])
def test_every_kind_of_failure_is_learned_from(kind: str) -> None:
    described = scenario(
        {"name": "a", "reliability": 0.4, "tokens_per_s": 80, "failing": {"kind": kind}},
        {"name": "b", "reliability": 1.0},
        requests=600,
        asking={"duration_s": 1800},
    )

    got = run(described)

    late = [call for call in got.calls if call.began_s > 900]
    assert sum(call.provider == "b" for call in late) > 0.9 * len(late)


def test_a_provider_that_hangs_for_longer_than_clients_wait_is_left() -> None:
    described = scenario(
        {"name": "a", "tokens_per_s": 90, "reliability": 0.3, "failing": {"kind": "timeout"}},
        {"name": "b", "reliability": 0.99},
        requests=600,
        asking={"deadline_s": 10},  # the gateway waits for 15 s
    )

    got = run(described)

    late = [call for call in got.calls if call.began_s > 60]
    assert sum(call.provider == "a" for call in late) < 0.05 * len(late)
    assert served(got) > 0.9


def test_eight_workers_do_as_one_does() -> None:
    described = scenario(
        {"name": "a", "reliability": 0.9, "tokens_per_s": 90, "failing": {"kind": "timeout"}},
        {"name": "b", "reliability": 0.98, "tokens_per_s": 70},
        {"name": "c", "reliability": 0.95, "tokens_per_s": 75},
        requests=1000,
    )

    rewards = [
        mean([mean_reward(run(described, seed=seed, replicas=count)) for seed in range(3)])
        for count in (1, 8)
    ]

    assert rewards[1] == pytest.approx(rewards[0], rel=0.05)
