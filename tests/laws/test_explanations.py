"""Laws of the document that tells a ranking, for every strategy in the table."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.core.routing.explanation import ExplainedKey, explain_ranking
from cluster_gw.core.routing.posterior import seed_chance
from cluster_gw.core.routing.ranking import Ranking
from cluster_gw.core.routing.strategies import STRATEGIES
from cluster_gw.pipeline.plan import make_ranking
from cluster_gw.units import RouteId
from tests.core.routing.pool import Known, Pool
from tests.laws.test_strategies import NAMES, POOLS, Name, pool_of

PLACES = st.none() | st.integers(0, 7)


def ranking_of(
    pool: Pool, seed: int, pinned: int | None = None, last_good: int | None = None
) -> Ranking:
    inputs = pool.inputs(
        seed_chance(seed),
        pinned=None if pinned is None else RouteId(f"p/m{pinned}"),
        last_good=None if last_good is None else RouteId(f"p/m{last_good}"),
    )
    return make_ranking(pool.context(), inputs)


def document(pool: Pool, ranking: Ranking, most: int | None = None) -> list[dict[str, Any]]:
    """What everybody reads: plain JSON."""
    told = explain_ranking(ranking, pool.signals, lambda _: [ExplainedKey(id="k")], most)
    places: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(told))
    return places


def recomputed(place: dict[str, Any]) -> float:
    """The score by what is written, in plain arithmetic."""
    score: float = math.fsum(factor["contribution"] for factor in place["factors"])
    score *= math.prod(multiplier["value"] for multiplier in place["multipliers"])
    return score + math.fsum(adjustment["delta"] for adjustment in place["adjustments"])


@NAMES
@settings(max_examples=40)
@given(known=POOLS, seed=st.integers(0, 10**9), pinned=PLACES, last_good=PLACES)
def test_contributions_times_multipliers_plus_adjustments_are_the_score(
    name: Name, known: list[Known], seed: int, pinned: int | None, last_good: int | None
) -> None:
    pool = pool_of(name, known)

    for place in document(pool, ranking_of(pool, seed, pinned, last_good)):
        for factor in place["factors"]:
            assert factor["weight"] * factor["value"] == factor["contribution"]
        if place["score"] is None:
            assert not place["factors"]
        else:
            assert abs(recomputed(place) - place["score"]) <= 1e-9


@NAMES
@settings(max_examples=40)
@given(known=POOLS, seed=st.integers(0, 10**9), pinned=PLACES)
def test_ranks_count_from_one_in_the_order_in_which_routes_are_tried(
    name: Name, known: list[Known], seed: int, pinned: int | None
) -> None:
    pool = pool_of(name, known)
    ranking = ranking_of(pool, seed, pinned)

    places = document(pool, ranking)

    assert [place["rank"] for place in places] == list(range(1, len(known) + 1))
    assert [place["route"] for place in places] == [one.route.id for one in ranking.candidates]
    assert all(place["reasons"] for place in places)
    assert [place["half_open"] for place in places] == [
        pool.signals.routes[one.route.id].half_open for one in ranking.candidates
    ]


@NAMES
@settings(max_examples=40)
@given(known=POOLS, seed=st.integers(0, 10**9), most=st.integers(0, 9), pinned=PLACES)
def test_the_first_places_are_told_as_they_are_among_all(
    name: Name, known: list[Known], seed: int, most: int, pinned: int | None
) -> None:
    pool = pool_of(name, known)
    ranking = ranking_of(pool, seed, pinned)

    assert document(pool, ranking, most) == document(pool, ranking)[:most]


@pytest.mark.parametrize("name", sorted(STRATEGIES), ids="-".join)
def test_what_moved_a_route_is_its_last_reason(name: Name) -> None:
    pool = pool_of(name, [Known(), Known(), Known()])
    ranking = make_ranking(pool.context(), pool.inputs(pinned=RouteId("p/m2")))

    told = {place["route"]: place["reasons"] for place in document(pool, ranking)}

    assert told["p/m2"][-1] == "sticky"
