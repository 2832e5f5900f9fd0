"""Routes that nobody may ask for now go behind, and say why; nothing else moves."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.axes import throughput_score
from cluster_gw.core.routing.catalog import Candidate
from cluster_gw.core.routing.headroom import HeadroomPolicy, Left
from cluster_gw.core.routing.ranking import Move
from cluster_gw.core.routing.signals import (
    Bar,
    RouteSignals,
    Signals,
    TargetSignals,
    bar_of_route,
    route_signals,
    stand_back,
)
from cluster_gw.core.routing.statistics import Statistics
from tests.pipeline.catalogs import make_key, make_route

REST = Bar(gate=Gate.COOLDOWN, until_s=100.0)


def candidates(tiers: list[int]) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(route=make_route(f"m{n}"), position=n, match_tier=tier)
        for n, tier in enumerate(tiers)
    )


def signals(listed: tuple[Candidate, ...], *places: int, bar: Bar = REST) -> Signals:
    return Signals(version=7, barred={listed[place].route.id: bar for place in places})


def test_a_barred_route_goes_behind_and_says_why() -> None:
    listed = candidates([0, 0, 0])

    after, moves = stand_back(listed, signals(listed, 0), now_s=40.0)

    assert [one.position for one in after] == [1, 2, 0]
    reason = "cooldown for 60 s more, snapshot 7"
    assert moves == (Move(route=listed[0].route.id, reason=reason),)


def test_a_bar_that_is_over_moves_nothing() -> None:
    listed = candidates([0, 0])

    assert stand_back(listed, signals(listed, 0), now_s=100.0) == (listed, ())


def test_where_all_are_barred_the_order_stays() -> None:
    listed = candidates([0, 0, 0])

    after, _ = stand_back(listed, signals(listed, 0, 1, 2), now_s=0.0)

    assert [one.position for one in after] == [0, 1, 2]


@given(tiers=st.lists(st.integers(0, 2), max_size=8).map(sorted), places=st.sets(st.integers(0, 7)))
def test_standing_back_is_a_stable_permutation_by_tier(tiers: list[int], places: set[int]) -> None:
    listed = candidates(tiers)
    barred = [place for place in places if place < len(listed)]

    after, _ = stand_back(listed, signals(listed, *barred), now_s=0.0)

    assert sorted(one.position for one in after) == list(range(len(listed)))
    assert [one.match_tier for one in after] == tiers
    order = [(one.match_tier, one.position in barred, one.position) for one in after]
    assert order == sorted(order)


def test_a_route_is_barred_only_when_all_its_keys_are_and_until_the_first_is_free() -> None:
    free, short, long = (
        TargetSignals(bar=bar) for bar in (None, REST, Bar(gate=Gate.BREAKER_OPEN, until_s=200.0))
    )

    assert bar_of_route([long, short]) == REST
    assert bar_of_route([long, free, short]) is None
    assert bar_of_route([]) is None


def test_a_route_is_known_by_all_its_keys_together() -> None:
    one = Statistics(successes=3.0, output_tokens=600.0, latency_ms=10_000.0)
    other = Statistics(successes=1.0, failures=2.0)

    found = of_route(TargetSignals(statistics=one), TargetSignals(statistics=other))

    assert (found.statistics.successes, found.statistics.failures) == (4.0, 2.0)
    assert found.speed == throughput_score(60.0)


def test_headroom_is_that_of_the_key_with_most_left_among_those_that_may_be_asked() -> None:
    free, full = TargetSignals(left=Left(day=0.1)), TargetSignals(left=Left(day=0.02))
    resting = TargetSignals(left=Left(day=0.9), bar=REST)

    assert of_route(free, full, resting).headroom == pytest.approx(0.1 + 0.9 * 0.5)
    assert of_route(resting).headroom == 1.0
    assert of_route(full, TargetSignals()).headroom == 1.0


def test_headroom_is_the_scarcer_of_month_and_windows_and_never_their_product() -> None:
    keys = TargetSignals(left=Left(day=0.15), month_tokens=900), TargetSignals(month_tokens=900)
    month = 1.0 - 1800 / 2000

    assert of_route(*keys, monthly=1000).remaining == pytest.approx(month)
    assert of_route(keys[0], monthly=10_000).remaining == 0.15


def test_a_key_that_is_rejected_gives_no_months_tokens_and_no_room() -> None:
    rejected = TargetSignals(is_routed=False, left=Left(day=0.9))
    low = TargetSignals(left=Left(day=0.1))

    assert of_route(low, rejected).remaining == 0.1
    half_used = TargetSignals(month_tokens=500)
    assert of_route(half_used, rejected, monthly=1000).remaining == 0.5
    assert of_route(half_used, TargetSignals(), monthly=1000).remaining == 0.75


def test_penalty_takes_up_to_six_tenths_of_the_score() -> None:
    factors = [of_route(TargetSignals(), points=points).rate_limit for points in (0, 3, 10)]

    assert factors == pytest.approx([1.0, 0.82, 0.4])


def of_route(*keys: TargetSignals, monthly: int | None = None, points: float = 0) -> RouteSignals:
    route = make_route("m", keys=tuple(make_key(f"k{n}") for n in range(len(keys))))
    return route_signals(
        msgspec.structs.replace(route, monthly_tokens=monthly),
        {key.id: one for key, one in zip(route.keys, keys, strict=True)},
        HeadroomPolicy(),
        penalty_points=points,
        most_points=10.0,
    )


def test_the_clock_of_the_server_is_told_by_that_of_this_worker() -> None:
    assert Signals(zero_ms=1000.0).server_ms(2.5) == 3500.0


def test_the_key_with_the_highest_factor_counts_under_a_ramp_of_minutes() -> None:
    route = make_route("m", keys=(make_key("k0"), make_key("k1")))
    by_key = {
        make_key("k0").id: TargetSignals(left=Left(minute=0.0, day=0.1)),
        make_key("k1").id: TargetSignals(left=Left(minute=0.05, day=0.0)),
    }

    found = route_signals(
        route,
        by_key,
        HeadroomPolicy(minute_ramp_start=0.0),
        penalty_points=0.0,
        most_points=10.0,
    )

    assert found.headroom == pytest.approx(0.55)
    assert found.remaining == 0.0


def test_the_first_byte_counts_as_much_as_the_operator_says_for_route_and_keys() -> None:
    seen = Statistics(
        successes=9.0,
        output_tokens=600.0,
        latency_ms=10_000.0,
        first_byte_ms=9 * 5000.0,
        first_bytes=9.0,
    )
    route = make_route("m", keys=(make_key("k0"), make_key("k1")))
    by_key = {key.id: TargetSignals(statistics=seen) for key in route.keys}

    found = route_signals(
        route,
        by_key,
        HeadroomPolicy(),
        penalty_points=0.0,
        most_points=10.0,
        first_byte_share=0.0,
    )

    assert found.speed == pytest.approx(throughput_score(60.0))
    assert found.keys is not None
    assert found.keys.speed.tolist() == pytest.approx([0.25 * throughput_score(60.0)] * 2)
