"""Declared order that gives way to live penalties."""

from hypothesis import given
from hypothesis import strategies as st

from tests.core.routing.pool import Known, Pool, places


def pool(*points: float) -> Pool:
    return Pool([Known(points=one) for one in points], "priority")


def test_without_penalties_the_declared_order_stays() -> None:
    assert places(pool(0, 0, 0, 0).rank()) == [0, 1, 2, 3]


def test_a_penalty_of_three_moves_a_route_three_places_back() -> None:
    assert places(pool(3, 0, 0, 0, 0).rank()) == [1, 2, 0, 3, 4]
    assert places(pool(3.5, 0, 0, 0, 0).rank()) == [1, 2, 3, 0, 4]


def test_the_place_and_the_penalty_are_told() -> None:
    told = pool(3, 0).told()

    assert [one.reasons for one in told] == [
        ("declared position 2",),
        ("declared position 1", "penalized 3"),
    ]
    assert [one.score for one in told] == [None, None]


@given(st.lists(st.floats(0, 10), max_size=8))
def test_order_is_by_rank_and_points_then_by_declared_position(points: list[float]) -> None:
    ranked = places(pool(*points).rank())

    assert ranked == sorted(range(len(points)), key=lambda n: (n + 1 + points[n], n))


def test_a_zeroed_route_keeps_its_place_in_priority() -> None:
    assert places(Pool([Known(weight=0.0), Known()], "priority").rank()) == [0, 1]
