"""Reliability as a distribution: draws, means, and what others saw."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.routing.posterior import (
    Draws,
    column,
    draw_reliability,
    parameters,
    seed_chance,
)
from cluster_gw.core.routing.prior import PRIOR_MAX, capped_prior


def test_without_chance_reliability_is_the_mean_of_the_posterior() -> None:
    means = draw_reliability(column([1, 10]), column([1, 2]), None)

    assert means.tolist() == pytest.approx([0.5, 10 / 12])


def test_draws_have_the_mean_and_the_variance_of_a_beta_distribution() -> None:
    size = 40_000
    drawn = draw_reliability(column([8] * size), column([2] * size), seed_chance(7))

    assert float(drawn.mean()) == pytest.approx(0.8, abs=0.01)
    assert float(drawn.var()) == pytest.approx(8 * 2 / (10**2 * 11), rel=0.05)


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    alpha, beta = column([3, 4, 5]), column([2, 2, 2])
    one, same, other = (draw_reliability(alpha, beta, seed_chance(s)).tolist() for s in (1, 1, 2))

    assert one == same
    assert one != other


def test_counts_that_cannot_be_count_as_none() -> None:
    sound = parameters([-3.0, float("nan"), 4.0, float("inf"), 1e30])

    assert sound.tolist() == [1.0, 1.0, 5.0, 1e9 + 1, 1e9 + 1]
    assert bool(np.isfinite(draw_reliability(sound, sound, seed_chance(1))).all())


def test_draws_ahead_are_each_given_once_and_follow_the_seed() -> None:
    alpha, beta = column([8, 1, 3]), column([2, 1, 3])
    chance, same = seed_chance(5), seed_chance(5)
    ahead, again = Draws(alpha, beta), Draws(alpha, beta)

    drawn = [ahead.take(chance).tolist() for _ in range(400)]

    assert drawn == [again.take(same).tolist() for _ in range(400)]
    assert len({tuple(one) for one in drawn}) == 400
    assert float(np.mean([one[0] for one in drawn])) == pytest.approx(0.8, abs=0.03)


def test_draws_of_another_source_begin_anew_and_without_one_are_means() -> None:
    draws = Draws(column([3, 1]), column([1, 3]))

    first = draws.take(seed_chance(1)).tolist()

    assert draws.take(None).tolist() == [0.75, 0.25]
    assert draws.take(seed_chance(1)).tolist() == first
    assert Draws(column([]), column([])).take(seed_chance(1)).tolist() == []


@given(
    counts=st.lists(st.tuples(st.floats(0, 1e7), st.floats(0, 1e7)), min_size=1, max_size=20),
    seed=st.integers(0, 10**6),
)
def test_every_draw_is_a_number_from_0_to_1(counts: list[tuple[float, float]], seed: int) -> None:
    drawn = draw_reliability(
        column(s + 1 for s, _ in counts), column(f + 1 for _, f in counts), seed_chance(seed)
    )

    assert bool(np.isfinite(drawn).all())
    assert bool(((drawn >= 0) & (drawn <= 1)).all())


@pytest.mark.parametrize(
    ("seen", "counted"),
    [((980, 20), (49, 1)), ((3, 1), (3, 1)), ((0, 0), (0, 0)), ((0, 1e12), (0, 50))],
)
def test_what_others_saw_counts_for_fifty_attempts_at_most(
    seen: tuple[float, float], counted: tuple[float, float]
) -> None:
    prior = capped_prior(*seen)

    assert (prior.successes, prior.failures) == pytest.approx(counted)
    assert prior.successes + prior.failures <= PRIOR_MAX + 1e-9
