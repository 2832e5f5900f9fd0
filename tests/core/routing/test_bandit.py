"""The bandit family: its score by hand, its guardrails, and what it says of itself."""

import math

import pytest

from cluster_gw.core.routing.posterior import seed_chance
from cluster_gw.core.routing.presets import Task
from cluster_gw.core.routing.prior import Prior
from cluster_gw.core.routing.ranking import total_score
from cluster_gw.core.routing.statistics import Statistics
from tests.core.routing.pool import Known, Pool, places

GOOD = Statistics(9.0, 1.0, 0.0, 600.0, 10_000.0, 23_850.0, 9.0)  # 60 tokens/s, 2650 ms
SPEED = 0.6 * (1 - 1 / math.e) + 0.4 * 0.5


def test_a_score_is_the_weighted_sum_times_every_guardrail() -> None:
    pool = Pool(
        [
            Known(statistics=GOOD, intelligence=3969.0, headroom=0.55, points=3.0, weight=0.5),
            Known(intelligence=1969.0),
            Known(intelligence=2969.0),
        ]
    )

    first = pool.rank().ranked_at(2)

    base = 0.5 * 10 / 12 + 0.25 * SPEED + 0.25 * 1.0
    assert first.route.id == "p/m0"
    assert first.base == pytest.approx(base)
    assert first.score == pytest.approx(base * 0.55 * 0.82 * 0.5)
    assert first.score == total_score(first)


def test_a_candidate_tells_its_factors_guardrails_and_reasons() -> None:
    pool = Pool([Known(statistics=GOOD, headroom=0.55, points=3.0, weight=0.5, tier=1)])

    (told,) = pool.told()

    parts = [(f.name, f.weight, f.source, f.samples) for f in told.factors]
    assert parts == [
        ("reliability", 0.5, "measured", 10.0),
        ("speed", 0.25, "measured", 9.0),
        ("intelligence", 0.25, "configured", 0.0),
    ]
    assert [f.value for f in told.factors] == pytest.approx([10 / 12, SPEED, 1.0])
    assert [f.contribution for f in told.factors] == pytest.approx([5 / 12, SPEED / 4, 0.25])
    assert [(m.name, m.detail) for m in told.multipliers] == [
        ("headroom", "0.550 left"),
        ("rate_limit", "3 points"),
        ("override", "weight of the model"),
    ]
    assert [m.value for m in told.multipliers] == pytest.approx([0.55, 0.82, 0.5])
    assert told.adjustments == ()
    assert told.reasons[1:] == ("match-tier 1", "headroom 0.550", "penalized 3", "override 0.5")


def test_what_nobody_called_has_priors_and_says_so() -> None:
    (told,) = Pool([Known()]).told()

    assert [(f.value, f.source) for f in told.factors] == [
        (0.5, "prior"),
        (0.6, "prior"),
        (1.0, "configured"),
    ]
    assert told.reasons[1:] == ("unmeasured",)


def test_what_others_saw_moves_the_posterior_and_is_no_sample_of_ours() -> None:
    (told,) = Pool([Known(prior=Prior(49.0, 1.0))]).told()

    reliability = told.factors[0]
    assert reliability.value == pytest.approx(50 / 52)
    assert (reliability.source, reliability.samples) == ("prior", 0.0)


def test_intelligence_is_scaled_over_the_candidates_of_the_request() -> None:
    pool = Pool([Known(intelligence=value) for value in (0.0, 250.0, 1000.0)])

    told = pool.told()
    few = pool.strategy.rank(pool.candidates[:2], pool.context(), pool.inputs())

    assert [t.factors[2].value for t in told] == [1.0, 0.25, 0.0]
    assert [few.ranked_at(place).factors[2].value for place in (0, 1)] == [1.0, 0.0]


def test_equal_intelligence_is_full_for_all() -> None:
    told = Pool([Known(intelligence=7.0), Known(intelligence=7.0)]).told()

    assert [t.factors[2].value for t in told] == [1.0, 1.0]


@pytest.mark.parametrize(("strategy", "first"), [("smartest", 0), ("fastest", 1), ("reliable", 2)])
def test_each_strategy_puts_first_what_it_is_named_for(strategy: str, first: int) -> None:
    clever = Known(statistics=Statistics(30.0, 20.0, 0.0, 3e3, 1e6, 2.5e5, 50.0), intelligence=4e3)
    quick = Known(statistics=Statistics(30.0, 20.0, 0.0, 6e4, 1e5, 1.5e4, 50.0), intelligence=2e3)
    sound = Known(statistics=Statistics(50.0, 0.0, 0.0, 3e3, 1e6, 2.5e5, 50.0), intelligence=2e3)
    pool = Pool([clever, quick, sound], strategy)

    assert places(pool.rank())[0] == first


def test_custom_weights_decide_alone() -> None:
    pool = Pool(
        [Known(intelligence=0.0, statistics=GOOD), Known(intelligence=1.0)],
        "custom",
        weights={"intelligence": 2.0},
    )

    assert [one.score for one in pool.told()] == [1.0, 0.0]


def test_the_task_and_the_hour_show_in_weights_and_reasons() -> None:
    pool = Pool([Known()])

    code = pool.rank(task=Task.CODE).ranked_at(0)
    peak = pool.rank(now_s=20 * 3600.0).ranked_at(0)

    assert [f.weight for f in code.factors] == pytest.approx([0.5, 0.175, 0.325])
    assert "task code" in code.reasons
    assert [f.weight for f in peak.factors] == pytest.approx([0.65, 0.10, 0.25])
    assert "peak-adjusted" in peak.reasons


def test_tier_comes_before_score() -> None:
    pool = Pool([Known(statistics=GOOD, tier=1), Known(points=10.0), Known(tier=1)])

    assert places(pool.rank())[0] == 1


def test_a_zeroed_route_is_behind_all_of_its_tier_even_at_equal_score() -> None:
    pool = Pool(
        [Known(weight=0.0, intelligence=9.0), Known(intelligence=0.0)],
        "custom",
        weights={"intelligence": 1.0},
    )

    told = pool.told()
    assert [one.score for one in told] == [0.0, 0.0]
    assert [one.candidate.position for one in told] == [1, 0]


def test_equal_scores_keep_the_declared_order() -> None:
    pool = Pool([Known() for _ in range(5)])

    assert places(pool.rank()) == [0, 1, 2, 3, 4]


def test_a_draw_is_made_once_and_told_as_it_was() -> None:
    order = Pool([Known(statistics=GOOD), Known()]).rank(seed_chance(3))

    assert order.tell() == order.tell()
    assert order.tell()[0].factors[0].value not in {10 / 12, 0.5}


def test_little_known_routes_are_drawn_first_now_and_then_and_bad_ones_hardly_ever() -> None:
    bad = Statistics(5.0, 95.0)
    pool = Pool([Known(statistics=Statistics(90.0, 10.0)), Known(), Known(statistics=bad)])
    chance = seed_chance(11)

    firsts = [places(pool.rank(chance))[0] for _ in range(500)]

    assert 20 < firsts.count(1) < 250
    assert firsts.count(2) == 0


def test_what_a_snapshot_says_is_worked_out_once_for_all_its_requests() -> None:
    pool = Pool([Known(), Known()])
    kept = pool.resolved.candidates

    for _ in range(3):
        pool.strategy.rank(kept, pool.context(), pool.inputs())
        pool.strategy.rank((*kept,), pool.context(), pool.inputs())

    assert list(pool.signals.slates or {}) == [("Evidence", id(kept))]


def test_nothing_to_rank_is_an_empty_order() -> None:
    assert Pool([]).rank().candidates == ()
