"""Laws of every strategy in the table; a new one joins by being in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.context import build_context
from cluster_gw.core.routing.ranking import Ranked, total_score
from cluster_gw.core.routing.strategies import STRATEGIES
from cluster_gw.core.routing.strategies.base import StrategyInputs
from cluster_gw.units import ClientId
from tests.pipeline.catalogs import make_catalog, make_request, make_route

NAMES = pytest.mark.parametrize("name", sorted(STRATEGIES))


def ranked_by(name: str, tiers: list[int], cursor: int) -> tuple[Ranked, ...]:
    routes = [make_route(f"m{n}") for n in range(len(tiers))]
    resolved = make_catalog(*routes).resolve("auto")
    assert resolved is not None
    context = build_context(make_request(), resolved, ClientId("c"))
    candidates = [
        Candidate(route=route, position=n, match_tier=tier)
        for n, (route, tier) in enumerate(zip(routes, tiers, strict=True))
    ]
    return STRATEGIES[name].rank(candidates, context, StrategyInputs(cursor=cursor))


@NAMES
@given(tiers=st.lists(st.integers(0, 1), max_size=8), cursor=st.integers(0, 10**9))
def test_a_ranking_is_a_permutation_of_the_candidates_by_tier(
    name: str, tiers: list[int], cursor: int
) -> None:
    ranked = ranked_by(name, tiers, cursor)

    assert sorted(r.candidate.position for r in ranked) == list(range(len(tiers)))
    assert [r.candidate.match_tier for r in ranked] == sorted(tiers)


@NAMES
@given(tiers=st.lists(st.integers(0, 1), max_size=8), cursor=st.integers(0, 10**9))
def test_the_same_inputs_give_the_same_ranking(name: str, tiers: list[int], cursor: int) -> None:
    assert ranked_by(name, tiers, cursor) == ranked_by(name, tiers, cursor)


@NAMES
def test_every_place_has_a_reason_and_a_score_that_can_be_recomputed(name: str) -> None:
    for ranked in ranked_by(name, [0, 0, 0], 1):
        assert ranked.reasons
        assert ranked.score is None or ranked.score == total_score(ranked)


@given(size=st.integers(1, 8), start=st.integers(0, 10**6))
def test_round_robin_gives_every_member_the_first_place_once_per_cycle(
    size: int, start: int
) -> None:
    firsts = [
        ranked_by("round-robin", [0] * size, start + n)[0].candidate.position for n in range(size)
    ]

    assert sorted(firsts) == list(range(size))


def test_priority_keeps_the_declared_order() -> None:
    ranked = ranked_by("priority", [0, 0, 0], 17)

    assert [r.candidate.position for r in ranked] == [0, 1, 2]
