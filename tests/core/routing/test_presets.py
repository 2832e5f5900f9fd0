"""Weights: of the strategies, of the operator, by the hour and by the task."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.routing.presets import (
    FACTORS,
    PRESETS,
    PeakHours,
    Scoring,
    Task,
    Tuning,
    build_scoring,
    normalise,
)
from cluster_gw.units import MS_PER_S

PEAK = PeakHours(enabled=True)


def scoring(strategy: str, weights: dict[str, float] | None = None) -> Scoring:
    return build_scoring("bandit", strategy, weights or {}, Tuning(peak_hours=PEAK, task_share=0.3))


def at(hour: int, minute: int = 0) -> int:
    return round(datetime(2026, 7, 1, hour, minute, tzinfo=UTC).timestamp() * MS_PER_S)


@pytest.mark.parametrize(
    ("strategy", "weights"),
    [
        ("balanced", (0.50, 0.25, 0.25)),
        ("smartest", (0.35, 0.10, 0.55)),
        ("fastest", (0.35, 0.55, 0.10)),
        ("reliable", (0.70, 0.15, 0.15)),
        ("custom", (0.50, 0.25, 0.25)),
    ],
)
def test_a_strategy_of_the_bandit_family_is_its_weights(
    strategy: str, weights: tuple[float, ...]
) -> None:
    plain = scoring(strategy).weights(Task.AUTO, is_peak=False)

    assert plain == pytest.approx(weights)


@pytest.mark.parametrize(("name", "preset"), PRESETS.items())
def test_presets_name_the_factors_of_their_family_and_sum_to_one(
    name: tuple[str, str], preset: dict[str, float]
) -> None:
    weights = normalise(preset, FACTORS[name[0]])

    assert set(preset) <= set(FACTORS[name[0]])
    assert sum(weights) == pytest.approx(1.0)


def test_custom_weights_are_divided_by_their_sum_and_missing_ones_are_none() -> None:
    own = scoring("custom", {"speed": 3.0, "intelligence": 1.0})

    assert own.plain == (0.0, 0.75, 0.25)


@given(st.dictionaries(st.sampled_from("abcdx"), st.floats(-10, 10)))
def test_weights_are_never_negative_and_sum_to_one(weights: dict[str, float]) -> None:
    found = normalise(weights, ("a", "b", "c"))

    assert sum(found) == pytest.approx(1.0)
    assert min(found) >= 0


def test_weights_that_are_all_nothing_are_split_evenly() -> None:
    assert normalise({"a": 0.0, "b": -1.0}, ("a", "b")) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("strategy", "task", "is_peak", "weights"),
    [
        ("balanced", Task.AUTO, True, (0.65, 0.10, 0.25)),
        ("smartest", Task.AUTO, True, (0.41, 0.04, 0.55)),
        ("balanced", Task.CODE, False, (0.50, 0.175, 0.325)),
        ("balanced", Task.CHAT, False, (0.50, 0.325, 0.175)),
        ("balanced", Task.CODE, True, (0.65, 0.07, 0.28)),
        ("smartest", Task.CHAT, True, (0.41, 0.205, 0.385)),
    ],
)
def test_hour_and_task_shift_the_weights_in_that_order(
    strategy: str, task: Task, is_peak: bool, weights: tuple[float, ...]
) -> None:
    assert scoring(strategy).weights(task, is_peak=is_peak) == pytest.approx(weights)


@pytest.mark.parametrize("strategy", ["fastest", "reliable", "custom"])
def test_of_the_other_strategies_nothing_is_shifted(strategy: str) -> None:
    exempt = scoring(strategy)

    assert exempt.peak is None
    assert {exempt.weights(task, is_peak=hour) for task in Task for hour in (False, True)} == {
        exempt.plain
    }


@pytest.mark.parametrize(
    ("hour", "minute", "holds"),
    [(17, 59, False), (18, 0, True), (23, 59, True), (0, 0, True), (5, 59, True), (6, 0, False)],
)
def test_peak_hours_include_their_start_not_their_end_and_pass_midnight(
    hour: int, minute: int, holds: bool
) -> None:
    assert PEAK.holds(at(hour, minute)) is holds


def test_peak_hours_within_a_day_are_in_their_zone() -> None:
    hours = PeakHours(enabled=True, start_hour=9, end_hour=17, timezone="Asia/Tokyo")

    assert [hours.holds(at(h)) for h in (0, 7, 8, 23)] == [True, True, False, False]


def test_equal_hours_and_hours_that_are_off_are_never_peak() -> None:
    for hours in (PeakHours(enabled=True, start_hour=7, end_hour=7), PeakHours()):
        assert not any(hours.holds(at(hour)) for hour in range(24))


@pytest.mark.parametrize(
    ("strategy", "raw"),
    [
        ("smart", (30, 20, 15, 15, 15, 5)),
        ("quality", (20, 25, 5, 35, 10, 5)),
        ("fast", (25, 20, 40, 0, 10, 5)),
        ("reliable", (30, 40, 10, 0, 15, 5)),
        ("cheap", (30, 20, 10, 0, 5, 35)),
    ],
)
def test_raw_weights_of_the_classic_family_are_the_published_ones(
    strategy: str, raw: tuple[int, ...]
) -> None:
    assert tuple(PRESETS["classic", strategy].values()) == raw
    assert tuple(PRESETS["classic", strategy]) == FACTORS["classic"]
