"""A route of which little is known goes first now and then; never one that cannot serve."""

from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.posterior import seed_chance
from cluster_gw.core.routing.presets import Tuning
from cluster_gw.core.routing.signals import Bar
from cluster_gw.core.routing.statistics import Statistics
from cluster_gw.pipeline.plan import make_ranking
from tests.core.routing.pool import Known, Pool

BEST = Known(statistics=Statistics(1000.0, 0.0), intelligence=1000.0)
POOR = Known(points=10.0, headroom=0.1)
REST = Bar(gate=Gate.COOLDOWN, until_s=1e9)
ALWAYS = Tuning(exploration=1.0)


def firsts(pool: Pool, requests: int = 400, *, tools: bool = False) -> list[int]:
    chance = seed_chance(5)
    rankings = [
        make_ranking(pool.context(tools=tools), pool.inputs(chance)) for _ in range(requests)
    ]
    return [ranking.candidates[0].position for ranking in rankings]


def test_the_configured_share_of_requests_tries_an_unmeasured_route() -> None:
    tried = firsts(Pool([BEST, POOR, POOR], explore=0.1), 2000)

    assert 140 < 2000 - tried.count(0) < 260
    assert tried.count(1) > 60
    assert tried.count(2) > 60


def test_without_a_share_nothing_is_tried() -> None:
    assert set(firsts(Pool([BEST, POOR]))) == {0}


def test_a_try_is_told_and_the_others_keep_their_order() -> None:
    pool = Pool([BEST, POOR, BEST], explore=1.0)

    ranking = make_ranking(pool.context(), pool.inputs(seed_chance(1)))

    assert ranking.candidates[0].position == 1
    assert ranking.ranked[0].reasons[-1] == "explore unmeasured"
    assert ranking.ranked[0].score == ranking.score_of(ranking.candidates[0].route)
    scores = [one.score or 0.0 for one in ranking.ranked[1:]]
    assert scores == sorted(scores, reverse=True)


def test_no_try_is_spent_on_what_is_zeroed_known_barred_or_unable() -> None:
    unable = Known(tools=False)
    for hopeless in (
        Known(weight=0.0),
        Known(statistics=Statistics(3.0, 2.0), points=10.0, headroom=0.1),
        Known(bar=REST),
        Known(headroom=0.0),
        Known(tier=1),
    ):
        pool = Pool([BEST, hopeless, unable], explore=1.0)
        ranking = pool.strategy.rank(pool.candidates, pool.context(tools=True), pool.inputs())
        assert ranking.candidates[0].position == 0
        if not hopeless.tier:
            assert set(firsts(pool, 50, tools=True)) == {0}


def test_while_few_providers_are_usable_nothing_is_tried() -> None:
    assert set(firsts(Pool([BEST, POOR], explore=1.0, is_degraded=True), 50)) == {0}


def test_without_chance_nothing_is_tried() -> None:
    pool = Pool([BEST, POOR], explore=1.0)

    assert make_ranking(pool.context(), pool.inputs()).candidates[0].position == 0


def test_a_try_of_the_classic_family_is_not_spent_on_what_has_nothing_left() -> None:
    pool = Pool([BEST, Known(headroom=0.0), Known(bar=REST)], "smart", "classic", tuning=ALWAYS)

    assert set(firsts(pool, 50)) == {0}
