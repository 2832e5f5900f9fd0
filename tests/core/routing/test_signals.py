"""Routes that nobody may ask for now go behind, and say why; nothing else moves."""

from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.ranking import Ranked
from cluster_gw.core.routing.signals import (
    Bar,
    Signals,
    TargetSignals,
    bar_of_route,
    stand_back,
)
from tests.pipeline.catalogs import make_route

REST = Bar(gate=Gate.COOLDOWN, until_s=100.0)


def ranking(tiers: list[int]) -> tuple[Ranked, ...]:
    return tuple(
        Ranked(
            candidate=Candidate(route=make_route(f"m{n}"), position=n, match_tier=tier),
            reasons=(f"declared position {n + 1}",),
        )
        for n, tier in enumerate(tiers)
    )


def signals(ranked: tuple[Ranked, ...], *places: int, bar: Bar = REST) -> Signals:
    return Signals(version=7, barred={ranked[place].route.id: bar for place in places})


def test_a_barred_route_goes_behind_and_says_why() -> None:
    ranked = ranking([0, 0, 0])

    after = stand_back(ranked, signals(ranked, 0), now_s=40.0)

    assert [one.candidate.position for one in after] == [1, 2, 0]
    assert after[2].reasons == ("declared position 1", "cooldown for 60 s more, snapshot 7")
    assert after[:2] == ranked[1:]


def test_a_bar_that_is_over_moves_nothing() -> None:
    ranked = ranking([0, 0])

    assert stand_back(ranked, signals(ranked, 0), now_s=100.0) is ranked


def test_where_all_are_barred_the_order_stays() -> None:
    ranked = ranking([0, 0, 0])

    after = stand_back(ranked, signals(ranked, 0, 1, 2), now_s=0.0)

    assert [one.candidate.position for one in after] == [0, 1, 2]


@given(tiers=st.lists(st.integers(0, 2), max_size=8).map(sorted), places=st.sets(st.integers(0, 7)))
def test_standing_back_is_a_stable_permutation_by_tier(tiers: list[int], places: set[int]) -> None:
    ranked = ranking(tiers)
    barred = [place for place in places if place < len(ranked)]

    after = stand_back(ranked, signals(ranked, *barred), now_s=0.0)

    assert sorted(one.candidate.position for one in after) == list(range(len(ranked)))
    assert [one.candidate.match_tier for one in after] == tiers
    order = [
        (one.candidate.match_tier, one.candidate.position in barred, one.candidate.position)
        for one in after
    ]
    assert order == sorted(order)


def test_a_route_is_barred_only_when_all_its_keys_are_and_until_the_first_is_free() -> None:
    free, short, long = (
        TargetSignals(bar=bar) for bar in (None, REST, Bar(gate=Gate.BREAKER_OPEN, until_s=200.0))
    )

    assert bar_of_route([long, short]) == REST
    assert bar_of_route([long, free, short]) is None
    assert bar_of_route([]) is None
