"""The classic family: the first generation's published rankings, and every rule of its factors."""

from collections import Counter
from typing import Final

import pytest

from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.appraisal import (
    appraisal_of,
    places_of,
    relative_latency,
    reliability_of,
)
from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.exploration import pick_any
from cluster_gw.core.routing.posterior import seed_chance
from cluster_gw.core.routing.presets import Tuning, build_scoring
from cluster_gw.core.routing.ranking import Order
from cluster_gw.core.routing.signals import Bar
from cluster_gw.core.routing.statistics import NO_STATISTICS, Statistics
from cluster_gw.core.routing.strategies.two_choices import HEALTH_SHARE, RELIABILITY_SHARE
from cluster_gw.pipeline.plan import make_ranking
from cluster_gw.units import RouteId
from tests.core.routing.pool import NOON_S, Known, Pool, places
from tests.pipeline.catalogs import make_route

AFFINITY: Final = "prefix-affinity"
FNV: Final = Tuning(is_fnv=True, lkgp_boost=0.10)


def served(requests: int, failures: int, mean_ms: float) -> Statistics:
    """So many requests, the time of those that were answered."""
    answers = requests - failures
    return Statistics(successes=answers, failures=failures, latency_ms=answers * mean_ms)


A: Final = Known(statistics=served(10, 1, 400), quality=0.9)
B: Final = Known(statistics=served(10, 0, 1200))
C: Final = Known(half_open=True, quality=0.5)


def ranked(
    strategy: str, *, last_good: str | None = None, text: str = "x", tuning: Tuning = FNV
) -> Order:
    pool = Pool([A, B, C], strategy, "classic", tuning=tuning)
    inputs = pool.inputs(last_good=None if last_good is None else RouteId(last_good))
    return pool.strategy.rank(pool.candidates, pool.context(text=text), inputs)


def scores(order: Order) -> dict[int, float]:
    return {ranked.candidate.position: round(ranked.score or 0.0, 9) for ranked in order.tell()}


def test_factors_are_those_of_the_published_example() -> None:
    told = {one.candidate.position: one for one in ranked("weighted").tell()}

    values = {place: [factor.value for factor in one.factors] for place, one in told.items()}
    assert values == {
        0: [1, 0.9, 1, 0.9, 0, 1],
        1: [1, 1, 0, 0.5, 0, 0.5],
        2: [0.5, 0.5, 0.5, 0.5, 1, 0],
    }
    assert "half-open" in told[2].reasons
    assert "cache-affinity" in told[2].reasons


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("smart", {0: 0.815, 1: 0.600, 2: 0.550}),
        ("quality", {0: 0.840, 1: 0.650, 2: 0.525}),
        ("weighted", {0: 0.800, 1: 0.500, 2: 0.500}),
    ],
)
def test_scores_and_order_are_those_of_the_published_example(
    strategy: str, expected: dict[int, float]
) -> None:
    order = ranked(strategy)

    assert scores(order) == expected
    assert places(order) == [0, 1, 2]


def test_what_served_last_gets_a_boost_that_is_told() -> None:
    order = ranked("smart", last_good="p/m1")

    (told,) = [one for one in order.tell() if one.candidate.position == 1]
    assert scores(order) == {0: 0.815, 1: 0.700, 2: 0.550}
    assert [(one.name, one.delta) for one in told.adjustments] == [("lkgp_boost", 0.10)]
    assert "last-known-good" in told.reasons


def test_score_never_goes_above_one() -> None:
    pool = Pool(
        [Known(statistics=served(10, 0, 100), quality=1.0)],
        "smart",
        "classic",
        tuning=Tuning(lkgp_boost=1.0),
    )
    inputs = pool.inputs(last_good=RouteId("p/m0"))

    (told,) = pool.strategy.rank(pool.candidates, pool.context(), inputs).tell()

    assert told.score == 1.0
    assert [one.name for one in told.adjustments] == ["lkgp_boost", "clamp"]


def test_weights_of_the_operator_take_the_place_of_raw_ones() -> None:
    scoring = build_scoring("classic", "smart", {"latency": 60, "unheard-of": 7}, Tuning())

    assert scoring.plain == pytest.approx([n / 145 for n in (30, 20, 60, 15, 15, 5)])


@pytest.mark.parametrize("weights", [{}, dict.fromkeys(("health", "latency"), 0.0)])
def test_no_weights_are_equal_sixths(weights: dict[str, float]) -> None:
    assert build_scoring("classic", "weighted", weights, Tuning()).plain == (1 / 6,) * 6


def test_reliability_is_neutral_without_attempts() -> None:
    assert reliability_of(NO_STATISTICS) == 0.5
    assert reliability_of(served(10, 4, 1)) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ((None, None), (0.5, 0.5)),
        ((300.0, None), (1.0, 0.5)),
        ((300.0, 300.0), (1.0, 1.0)),
        ((100.0, 200.0, 300.0, None), (1.0, 0.5, 0.0, 0.5)),
    ],
)
def test_latency_is_relative_to_those_that_are_known(
    means: tuple[float | None, ...], expected: tuple[float, ...]
) -> None:
    statistics = [NO_STATISTICS if mean is None else served(10, 0, mean) for mean in means]

    assert relative_latency(statistics) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("positions", "expected"),
    [((7,), (1,)), ((3, 4), (1, 0)), ((4, 0, 9), (0.5, 1, 0)), ((), ())],
)
def test_priority_is_the_place_among_those_that_can_serve(
    positions: tuple[int, ...], expected: tuple[float, ...]
) -> None:
    candidates = [Candidate(route=make_route(f"m{n}"), position=n) for n in positions]

    assert places_of(candidates).tolist() == list(expected)


def test_without_a_prompt_affinity_is_neutral() -> None:
    values = {one.factors[4].value for one in ranked("smart", text="").tell()}

    assert values == {0.5}


def test_prompt_leads_to_one_route_by_rendezvous_as_well() -> None:
    tuning = Tuning()
    leaders = {
        one.candidate.position
        for text in map(str, range(40))
        for one in ranked("smart", text=text, tuning=tuning).tell()
        if one.factors[4].value == 1.0
    }

    assert leaders == {0, 1, 2}


@pytest.mark.parametrize(("text", "lead"), [("x", 2), ("hi", 0), ("stable", 1)])
def test_prefix_affinity_rotates_as_the_first_generation_did(text: str, lead: int) -> None:
    order = ranked("prefix-affinity", text=text)

    assert places(order) == [lead, (lead + 1) % 3, (lead + 2) % 3]


def test_prefix_affinity_moves_only_prompts_whose_route_has_gone() -> None:
    whole = Pool([Known()] * 4, "prefix-affinity", "classic", tuning=Tuning())

    for text in map(str, range(30)):
        context, inputs = whole.context(text=text), whole.inputs()
        first, second, *_ = whole.strategy.rank(whole.candidates, context, inputs).candidates
        for gone in whole.candidates:
            left = tuple(one for one in whole.candidates if one is not gone)
            leader = whole.strategy.rank(left, context, inputs).candidates[0]
            assert leader is (second if gone is first else first)


def test_last_known_good_goes_first() -> None:
    assert places(ranked("lkgp", last_good="p/m2")) == [2, 0, 1]
    assert places(ranked("lkgp", last_good="p/unknown")) == [0, 1, 2]
    assert places(ranked("lkgp")) == [0, 1, 2]


def test_two_choices_prefer_the_healthier_and_more_reliable() -> None:
    pool = Pool([A, B, C], "p2c", "classic", tuning=Tuning())

    firsts = Counter(places(pool.rank(seed_chance(n)))[0] for n in range(600))

    appraisal = appraisal_of(pool.candidates, pool.resolved, pool.signals)
    scores = HEALTH_SHARE * appraisal.health + RELIABILITY_SHARE * appraisal.reliability
    assert scores.round(9).tolist() == [0.96, 1.00, 0.50]
    # Of the three pairs b wins two, a one, c none.
    assert firsts[2] == 0
    assert firsts[1] == pytest.approx(400, abs=60)


def test_two_choices_without_chance_are_declared_order() -> None:
    assert places(Pool([C, A], "p2c", "classic").rank()) == [0, 1]


def test_exploration_tries_any_of_the_best_tier_alike() -> None:
    bar = Bar(gate=Gate.COOLDOWN, until_s=NOON_S + 60)
    known = [A, B, C, Known(weight=0.0), Known(bar=bar), Known(tier=1)]
    pool = Pool(known, "smart", "classic", tuning=Tuning(exploration=1.0))

    tried = [
        pick_any(pool.candidates, pool.context(), pool.inputs(seed_chance(n))) for n in range(300)
    ]

    counts = Counter(one.position for one in tried if one is not None)
    assert set(counts) == {0, 1, 2}
    assert all(count == pytest.approx(100, abs=45) for count in counts.values())


def test_what_is_explored_goes_first_and_says_so() -> None:
    pool = Pool([A, B, C], "smart", "classic", tuning=Tuning(exploration=1.0))

    made = [make_ranking(pool.context(), pool.inputs(seed_chance(n))) for n in range(30)]

    assert {one.candidates[0].position for one in made} == {0, 1, 2}
    assert all("explore" in one.ranked[0].reasons for one in made)


def test_exploration_is_off_without_its_share() -> None:
    pool = Pool([A, B, C], "smart", "classic", tuning=Tuning(exploration=0.0))

    ranking = [make_ranking(pool.context(), pool.inputs(seed_chance(n))) for n in range(50)]

    assert all(one.candidates[0].position == 0 and not one.moves for one in ranking)


@pytest.mark.parametrize("is_fnv", [False, True])
def test_the_affinity_factor_goes_to_the_route_that_prefix_affinity_would_lead_with(
    is_fnv: bool,
) -> None:
    tuning = Tuning(is_fnv=is_fnv)
    known = [Known(tier=1), Known(), Known(tier=1), Known(), Known()]
    scored, alone = (Pool(known, name, "classic", tuning=tuning) for name in ("smart", AFFINITY))
    led = set()
    for number in range(40):
        text = f"prompt {number}"
        order = scored.strategy.rank(scored.candidates, scored.context(text=text), scored.inputs())
        leads = alone.strategy.rank(alone.candidates, alone.context(text=text), alone.inputs())
        marked = [one for one in order.tell() if "cache-affinity" in one.reasons]
        assert [one.candidate.position for one in marked] == places(leads)[:1]
        led.add(places(leads)[0])

    assert led == {1, 3, 4}
