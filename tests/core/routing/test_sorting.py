"""Chains are sorted by intelligence, speed or budget, and only by that."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.routing.axes import TIERS, intelligence_composite
from cluster_gw.core.routing.catalog import Member, Route
from cluster_gw.core.routing.sorting import SortPreset, month_tokens, sort_members
from tests.pipeline.catalogs import make_route


def made(*changes: dict[str, Any]) -> list[Route]:
    return [
        msgspec.structs.replace(make_route(f"m{number}"), **change)
        for number, change in enumerate(changes)
    ]


def order(
    preset: SortPreset, routes: list[Route], written: dict[str, int] | None = None
) -> list[str]:
    ranks = {r.id: written[r.model] for r in routes if written and r.model in written}
    members = [Member(route=route.id) for route in routes]
    table = {route.id: route for route in routes}
    return [table[m.route].model for m in sort_members(preset, members, table, ranks)]


def test_intelligence_puts_the_tier_before_the_rank() -> None:
    routes = made(
        {"intelligence": intelligence_composite("Medium", 1)},
        {"intelligence": intelligence_composite("Frontier", 1000)},
        {"intelligence": intelligence_composite("Frontier", 2)},
        {"intelligence": intelligence_composite("Large", 7)},
    )

    assert order(SortPreset.INTELLIGENCE, routes) == ["m2", "m1", "m3", "m0"]


def test_speed_goes_by_the_operators_rank_then_by_what_was_measured_then_by_the_median() -> None:
    routes = made({}, {"speed_rank": 9}, {"speed_rank": 4}, {}, {})

    assert order(SortPreset.SPEED, routes) == ["m0", "m2", "m3", "m4", "m1"]
    assert order(SortPreset.SPEED, routes, {"m3": 1, "m4": 10, "m1": 1}) == [
        *("m3", "m0", "m2", "m1", "m4")
    ]


def test_budget_is_the_tokens_of_a_month() -> None:
    routes = made(
        {},
        {"monthly_tokens": 15_000_000},
        {"limits": Limits(tpd=1_000_000), "monthly_tokens": 5},
        {"limits": Limits(tpd=0), "monthly_tokens": 99_000_000},
    )

    assert order(SortPreset.BUDGET, routes) == ["m2", "m1", "m0", "m3"]
    assert [month_tokens(route) for route in routes] == [0, 15_000_000, 30_000_000, 0]


@given(
    st.sampled_from(SortPreset),
    st.lists(
        st.tuples(
            st.sampled_from(sorted(TIERS)),
            st.integers(1, 1000),
            st.none() | st.integers(1, 10),
            st.booleans(),
        ),
        max_size=8,
    ),
)
def test_sorting_moves_members_with_their_flags_and_twice_changes_nothing(
    preset: SortPreset, chosen: list[tuple[str, int, int | None, bool]]
) -> None:
    routes = made(
        *(
            {"intelligence": intelligence_composite(tier, rank), "speed_rank": speed}
            for tier, rank, speed, _ in chosen
        )
    )
    table = {route.id: route for route in routes}
    members = tuple(
        Member(route=route.id, enabled=enabled)
        for route, (_, _, _, enabled) in zip(routes, chosen, strict=True)
    )

    once = sort_members(preset, members, table)

    assert sorted(once, key=lambda m: m.route) == sorted(members, key=lambda m: m.route)
    assert sort_members(preset, once, table) == once
