"""What was measured of speed is written down where it is new, and nowhere else."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.routing.axes import speed_score
from cluster_gw.core.routing.signals import RouteSignals
from cluster_gw.core.routing.speed_ranks import (
    changed_ranks,
    measured_speed_rank,
    speed_rank_of,
)
from cluster_gw.core.routing.statistics import Statistics
from cluster_gw.units import RouteId
from tests.pipeline.catalogs import make_route

ONE, TWO, OWN = make_route("one"), make_route("two"), make_route("own")
OWN = msgspec.structs.replace(OWN, speed_rank=700)
ROUTES = {route.id: route for route in (ONE, TWO, OWN)}
GONE = RouteId("p/gone")
FAST = Statistics(successes=20, output_tokens=1e6, latency_ms=1e3)
SLOW = Statistics(successes=10, failures=10, timeouts=10, output_tokens=0, latency_ms=1e6)


def known(statistics: Statistics) -> RouteSignals:
    return RouteSignals(statistics=statistics, speed=speed_score(statistics))


@pytest.mark.parametrize(
    ("statistics", "rank"),
    [
        (Statistics(), None),
        (Statistics(successes=19.9, output_tokens=1e6, latency_ms=1e3), None),
        (Statistics(successes=19, failures=90, output_tokens=1e6, latency_ms=1e3), None),
        (FAST, 1),
        (SLOW, 10),
    ],
)
def test_speed_is_measured_from_twenty_attempts_on(
    statistics: Statistics, rank: int | None
) -> None:
    assert measured_speed_rank(known(statistics)) == rank


@given(speed=st.floats(0.0, 1.0))
def test_rank_falls_with_speed_in_nine_even_steps(speed: float) -> None:
    rank = measured_speed_rank(RouteSignals(statistics=FAST, speed=speed))

    assert rank is not None
    assert 1 <= rank <= 10
    assert abs(rank - (1.0 + (1.0 - speed) * 9.0)) <= 0.5


def test_what_is_new_is_written_and_what_has_no_route_is_forgotten() -> None:
    seen = {ONE.id: known(FAST), TWO.id: known(SLOW), GONE: known(FAST)}

    assert changed_ranks({TWO.id: 3, GONE: 4}, ROUTES, seen) == {GONE: None, ONE.id: 1, TWO.id: 10}


def test_writing_twice_changes_nothing() -> None:
    seen = {ONE.id: known(FAST), TWO.id: known(SLOW)}
    written = {route: rank for route, rank in changed_ranks({}, ROUTES, seen).items() if rank}

    assert written == {ONE.id: 1, TWO.id: 10}
    assert changed_ranks(written, ROUTES, seen) == {}


def test_what_was_written_outlives_statistics_and_a_rank_of_the_operator() -> None:
    written = {ONE.id: 4, OWN.id: 2}

    assert changed_ranks(written, ROUTES, {}) == {}
    assert changed_ranks(written, ROUTES, {OWN.id: known(SLOW)}) == {}
    assert [speed_rank_of(route, written) for route in (ONE, TWO, OWN)] == [4, None, 700]
