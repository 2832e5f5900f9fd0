"""The engine by itself: parts that make a score, ties, adjustments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.posterior import column
from cluster_gw.core.routing.ranking import total_score
from cluster_gw.core.routing.scoring import (
    AdjustmentColumn,
    Scored,
    order_by_score,
)
from cluster_gw.core.routing.slate import (
    FactorColumn,
    MultiplierColumn,
    Slate,
    product_of,
    scaled,
    tiers_of,
    ties_of,
)
from tests.core.routing.pool import places
from tests.pipeline.catalogs import make_route

RATIO = st.floats(0, 1)
ROWS = st.lists(st.tuples(RATIO, RATIO, RATIO, RATIO, st.integers(0, 2)), min_size=1, max_size=9)


def scored(rows: list[tuple[float, float, float, float, int]], *, clamp: bool = False) -> Scored:
    """Rows of two factors, a guardrail, a boost and a tier."""
    candidates = tuple(
        Candidate(route=make_route(f"m{n}"), position=n, match_tier=row[4])
        for n, row in enumerate(rows)
    )
    guards = (
        MultiplierColumn(name="guard", values=column(r[2] for r in rows), detail=lambda _: ""),
    )
    slate = Slate(
        candidates=candidates,
        factors=(measured("a"), measured("b")),
        multipliers=guards,
        product=product_of(guards, len(rows)),
        ties=ties_of(candidates),
        tiers=tiers_of(candidates),
    )
    values = column(r[0] for r in rows), column(r[1] for r in rows)
    boosts = (AdjustmentColumn(name="boost", values=column(r[3] for r in rows)),) if clamp else ()
    return order_by_score(slate, (0.7, 0.3), values, adjustments=boosts, why=lambda _: ())


def measured(name: str) -> FactorColumn:
    return FactorColumn(name=name, source=lambda _: "measured")


@given(ROWS, st.booleans())
def test_a_score_can_be_recomputed_from_what_is_told(
    rows: list[tuple[float, float, float, float, int]], clamp: bool
) -> None:
    for told in scored(rows, clamp=clamp).tell():
        assert told.score == total_score(told)


@given(ROWS)
def test_order_is_tier_then_score_then_declared_position(
    rows: list[tuple[float, float, float, float, int]],
) -> None:
    told = scored(rows, clamp=True).tell()

    keys = [(t.candidate.match_tier, -(t.score or 0.0), t.candidate.position) for t in told]
    assert keys == sorted(keys)


def test_an_adjustment_is_added_after_the_guardrails_and_told() -> None:
    (told,) = scored([(1.0, 1.0, 0.5, 0.25, 0)], clamp=True).tell()

    assert told.score == pytest.approx(0.75)
    assert [(a.name, a.delta) for a in told.adjustments] == [("boost", 0.25)]


def test_sums_that_are_equal_in_mathematics_are_ties() -> None:
    order = scored([(0.1, 0.2, 1.0, 0.0, 0), (0.1 + 1e-16, 0.2, 1.0, 0.0, 0)])

    assert places(order) == [0, 1]
    assert order.score_at(0) == order.score_at(1) == 0.13


def test_candidates_that_come_out_of_order_are_ties_by_their_position() -> None:
    listed = tuple(Candidate(route=make_route(f"m{n}"), position=n) for n in (2, 0, 1))
    ones = column([1, 1, 1])
    slate = Slate(candidates=listed, factors=(measured("a"),), product=ones, ties=ties_of(listed))

    order = order_by_score(slate, (1.0,), (ones,), why=lambda _: ())

    assert places(order) == [0, 1, 2]


@given(st.lists(st.floats(-1e6, 1e6), max_size=9))
def test_scaling_gives_0_to_1_and_keeps_the_order(values: list[float]) -> None:
    found = scaled(column(values)).tolist()

    assert all(0 <= one <= 1 for one in found)
    assert all(
        found[i] <= found[j]
        for i in range(len(values))
        for j in range(len(values))
        if values[i] <= values[j]
    )
