"""What of the configuration decides how routes are scored."""

from collections.abc import Callable
from typing import Any

import pytest

from cluster_gw.core.routing import presets
from cluster_gw.core.routing import strategies as table
from cluster_gw.core.routing.axes import intelligence_composite
from cluster_gw.core.routing.presets import Task
from cluster_gw.core.routing.prior import NO_PRIOR, Prior
from cluster_gw.core.routing.resolution import Catalog
from cluster_gw.settings import Loaded, build_catalog
from cluster_gw.settings.strategies import FACTORS
from cluster_gw.settings.strategies import STRATEGIES as NAMED
from cluster_gw.units import ComboId, RouteId

Load = Callable[..., Loaded]
FaultsOf = Callable[..., list[str]]
BIG, SMALL = RouteId("far/big"), RouteId("local/small")
AUTO = ComboId("auto")


def catalog(load: Load, base: dict[str, Any]) -> Catalog:
    return build_catalog(load(base).settings, 1)


def test_every_strategy_that_may_be_named_runs_and_no_other() -> None:
    named = {(family, name) for family, names in NAMED.items() for name in names}

    assert named == set(table.STRATEGIES)


def test_factors_have_the_same_names_where_they_are_checked_and_where_they_count() -> None:
    assert {family: FACTORS[family] for family in presets.FACTORS} == dict(presets.FACTORS)


@pytest.mark.parametrize(("family", "strategy"), [("bandit", "balanced"), ("classic", "priority")])
def test_a_combo_without_a_strategy_has_that_of_its_family(
    base: dict[str, Any], load: Load, family: str, strategy: str
) -> None:
    base["combos"] = [{"id": "auto", "family": family}]

    assert catalog(load, base).combos[AUTO].strategy == strategy


@pytest.mark.parametrize(
    "where",
    [{"weights": {"speed": 3}}, {"strategy_options": {"weights": {"speed": 3}}}],
    ids=["weights", "options"],
)
def test_custom_weights_are_taken_from_either_place(
    base: dict[str, Any], load: Load, where: dict[str, Any]
) -> None:
    base["combos"] = [{"id": "auto", "strategy": "custom", **where}]

    assert catalog(load, base).combos[AUTO].scoring.plain == (0.0, 1.0, 0.0)


def test_weights_of_another_strategy_have_no_effect_and_are_warned_of(
    base: dict[str, Any], load: Load
) -> None:
    base["combos"] = [{"id": "auto", "strategy": "fastest", "weights": {"speed": 3}}]

    loaded = load(base)

    assert loaded.warnings == ('combos[0].weights: has no effect: strategy is "fastest"',)
    assert build_catalog(loaded.settings, 1).combos[AUTO].scoring.plain != (0.0, 1.0, 0.0)


def test_weights_in_two_places_must_agree(base: dict[str, Any], faults: FaultsOf) -> None:
    options = {"weights": {"speed": 1}}
    base["combos"] = [
        {"id": "auto", "strategy": "custom", "weights": {"speed": 2}, "strategy_options": options}
    ]

    assert faults(base) == ["combos[0].strategy_options.weights: contradicts weights"]


def test_peak_hours_and_task_share_reach_the_weights(base: dict[str, Any], load: Load) -> None:
    base["routing"] = {"peak_hours": {"enabled": True}, "task_weight_share": 1.0}

    scoring = catalog(load, base).combos[AUTO].scoring

    assert scoring.peak == pytest.approx((0.65, 0.10, 0.25))
    assert scoring.weights(Task.CODE, is_peak=False) == pytest.approx((0.5, 0.0, 0.5))


def test_a_model_without_tier_and_rank_has_the_lower_median_of_the_others(
    base: dict[str, Any], load: Load
) -> None:
    labelled = (("a", "Frontier", 9), ("b", "Small", 4), ("c", "Large", 70), ("d", "Medium", 30))
    base["models"] = [
        *base["models"],
        *(
            {"provider": "far", "model": name, "tier": tier, "intelligence_rank": rank}
            for name, tier, rank in labelled
        ),
        {"provider": "far", "model": "e", "tier": "other"},
    ]

    routes = catalog(load, base).routes

    assert routes[BIG].intelligence == intelligence_composite("Medium", 9)
    assert routes[RouteId("far/e")].intelligence == intelligence_composite("other", 9)
    assert routes[RouteId("far/a")].intelligence == intelligence_composite("Frontier", 9)


def test_where_no_model_is_labelled_all_are_medium_at_rank_50(
    base: dict[str, Any], load: Load
) -> None:
    assert catalog(load, base).routes[BIG].intelligence == intelligence_composite("Medium", 50)


def test_a_community_prior_is_found_by_either_name_of_a_route_and_capped(
    base: dict[str, Any], load: Load
) -> None:
    base["routing"] = {
        "community_prior": {
            "far:big": {"successes": 980, "failures": 20},
            "nobody/none": {"successes": 1},
        }
    }

    loaded = load(base)
    routes = build_catalog(loaded.settings, 1).routes

    assert routes[BIG].prior == Prior(49.0, 1.0)
    assert routes[SMALL].prior == NO_PRIOR
    assert [line.partition(":")[0] for line in loaded.warnings] == [
        "routing.community_prior.nobody/none"
    ]


def test_a_months_tokens_reach_the_route_and_nothing_is_no_opinion(
    base: dict[str, Any], load: Load
) -> None:
    base["models"][0]["monthly_tokens"] = "15M"
    base["models"][1]["monthly_tokens"] = 0

    routes = catalog(load, base).routes

    assert (routes[BIG].monthly_tokens, routes[SMALL].monthly_tokens) == (15_000_000, None)


def test_label_of_a_vendor_counts_and_one_that_tells_nothing_is_told(
    base: dict[str, Any], load: Load
) -> None:
    base["models"][0]["monthly_tokens"] = "~50-100M"
    base["models"][1]["monthly_tokens"] = "60 req/min"

    loaded = load(base)
    routes = build_catalog(loaded.settings, 1).routes

    assert (routes[BIG].monthly_tokens, routes[SMALL].monthly_tokens) == (100_000_000, None)
    assert [line.partition(":")[0] for line in loaded.warnings] == ["models[1].monthly_tokens"]


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ({"headroom": {"floor": 1.5}}, "headroom.floor: expected a number from 0 to 1, got 1.5"),
        (
            {"peak_hours": {"end_hour": 24}},
            "peak_hours.end_hour: expected a whole number from 0 to 23, got 24",
        ),
        ({"peak_hours": {"timezone": ""}}, "peak_hours.timezone: is no time zone, such as "),
    ],
)
def test_a_tunable_out_of_its_range_is_refused(
    base: dict[str, Any], faults: FaultsOf, section: dict[str, Any], fault: str
) -> None:
    base["routing"] = section

    (line,) = faults(base)
    assert line.startswith(f"routing.{fault}")


@pytest.mark.parametrize(
    ("combo", "idle"),
    [
        (
            {"strategy_options": {"exploration": 0.1, "lkgp_boost": 0.2}},
            ["exploration", "lkgp_boost"],
        ),
        ({"strategy_options": {"exploration": 0, "sticky": True}}, []),
        ({"family": "classic", "strategy_options": {"lkgp_boost": 0.2}}, ["lkgp_boost"]),
        ({"family": "classic", "strategy": "smart", "strategy_options": {"exploration": 0.1}}, []),
        ({}, []),
    ],
)
def test_options_that_a_strategy_does_not_have_are_named(
    base: dict[str, Any], load: Load, combo: dict[str, Any], idle: list[str]
) -> None:
    base["combos"] = [{"id": "auto", **combo}]

    warnings = load(base).warnings

    assert [line.partition(":")[0] for line in warnings] == [
        f"combos[0].strategy_options.{name}" for name in idle
    ]
    assert all("has no effect" in line for line in warnings)
