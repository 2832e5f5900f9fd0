"""Estimates as a request sees them: looked up, never asked for."""

from types import SimpleNamespace
from typing import Any

import pytest

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.estimate import NOTHING, EstimatePolicy, Learned, Lesson, raised_at_most
from cluster_gw.core.outcome.charge import Charge, TokenSource
from cluster_gw.pipeline import estimator as module
from cluster_gw.pipeline.estimator import ASK_AGAIN_LOOKS, IDLE_LOOKS, SWEEP_LOOKS, Estimator
from cluster_gw.units import ClientId, RouteId

APP, ROUTE, OTHER = ClientId("app"), RouteId("p/m"), RouteId("p/other")
GUESS = Demand(input_tokens=100, output_tokens=1000)
POLICY = EstimatePolicy()
FACT = Charge(counts_request=True, tokens=350, source=TokenSource.REPORTED, output_tokens=300)


def asking(
    *, learn: bool = True, max_tokens: int | None = None, routes: tuple[RouteId, ...] = (ROUTE,)
) -> Any:
    """As much of an exchange as estimating looks at."""
    policy = SimpleNamespace(estimates=EstimatePolicy(learn=learn))
    listed = [SimpleNamespace(route=SimpleNamespace(id=route)) for route in routes]
    return SimpleNamespace(
        client=APP,
        pair=None,
        context=SimpleNamespace(demand=GUESS),
        request=SimpleNamespace(max_tokens=max_tokens, choices=1),
        ranking=SimpleNamespace(candidates=listed),
        runtime=SimpleNamespace(policy=policy),
        most_tokens_of=lambda target: target.most_tokens,
    )


def to(route: RouteId, *limits: int) -> Any:
    """As much of a target as estimating looks at."""
    return SimpleNamespace(route=SimpleNamespace(id=route), most_tokens=raised_at_most(limits))


def served(estimator: Estimator, charge: Charge = FACT, *, learn: bool = True) -> None:
    """One request, from its admission to its settlement."""
    exchange = asking(learn=learn)
    estimator.demand(exchange, to(ROUTE))
    estimator.teach(exchange, charge)


def known(times: int, input_tokens: int, output_tokens: int) -> Learned:
    lesson = Lesson()
    for _ in range(times):
        lesson.note(GUESS, input_tokens, output_tokens)
    return lesson.sums()


def test_unknown_pair_is_guessed_and_asked_about_at_the_next_look() -> None:
    estimator = Estimator()

    assert estimator.demand(asking(), to(ROUTE)) is GUESS
    assert estimator.take_due() == {APP: {ROUTE: NOTHING}}
    assert estimator.take_due() == {}


def test_what_all_have_learned_corrects_the_next_request() -> None:
    estimator = Estimator()
    estimator.demand(asking(), to(ROUTE))

    estimator.take_over(APP, {ROUTE: known(1000, 200, 500)}, POLICY)

    demand = estimator.demand(asking(), to(ROUTE))
    assert 195 <= demand.input_tokens <= 201
    assert 500 <= demand.output_tokens <= 515
    assert estimator.demand(asking(), to(OTHER)) is GUESS


def test_nothing_is_corrected_or_collected_where_learning_is_off() -> None:
    estimator = Estimator()
    estimator.demand(asking(), to(ROUTE))
    estimator.take_over(APP, {ROUTE: known(1000, 200, 500)}, POLICY)
    estimator.take_due()

    served(estimator, learn=False)

    assert estimator.demand(asking(learn=False), to(ROUTE)) is GUESS
    assert estimator.largest(asking(learn=False), Allowance()) == GUESS
    assert estimator.take_due() == {}


def test_answer_is_not_guessed_longer_than_the_client_allows() -> None:
    estimator = Estimator()
    estimator.demand(asking(), to(ROUTE))
    estimator.take_over(APP, {ROUTE: known(1000, 100, 3000)}, POLICY)

    assert estimator.demand(asking(), to(ROUTE)).output_tokens > 2900
    assert estimator.demand(asking(max_tokens=1500), to(ROUTE)).output_tokens == 1500


def test_what_was_learned_never_makes_a_request_too_large_for_a_limit() -> None:
    estimator = Estimator()
    estimator.demand(asking(), to(ROUTE))
    estimator.take_over(APP, {ROUTE: known(1000, 300, 3000)}, POLICY)

    assert estimator.demand(asking(), to(ROUTE, 5000)).total_tokens == 2500
    assert estimator.known(asking(), to(ROUTE, 5000)).total_tokens == 2500
    assert estimator.demand(asking(), to(ROUTE, 1500)).total_tokens == GUESS.total_tokens
    assert estimator.largest(asking(), Allowance(tpm=3000)).total_tokens == 1500


def test_reported_answers_are_lessons_until_they_are_told() -> None:
    estimator = Estimator()
    for _ in range(3):
        served(estimator)

    assert estimator.take_due() == {APP: {ROUTE: known(3, 50, 300)}}
    assert estimator.take_due() == {}


def test_what_was_only_estimated_teaches_nothing() -> None:
    estimator = Estimator()
    guessed = Charge(counts_request=True, tokens=350, source=TokenSource.ESTIMATED)

    served(estimator, guessed)

    assert estimator.take_due() == {APP: {ROUTE: NOTHING}}


def test_pair_in_use_is_asked_about_again_after_some_looks() -> None:
    estimator = Estimator()
    estimator.demand(asking(), to(ROUTE))
    estimator.take_due()
    estimator.demand(asking(), to(ROUTE))

    looks = [bool(estimator.take_due()) for _ in range(ASK_AGAIN_LOOKS + 1)]

    assert looks == [False] * ASK_AGAIN_LOOKS + [True]


def test_lesson_of_an_answer_that_outlived_an_exchange_is_told_by_the_next() -> None:
    estimator, exchange = Estimator(), asking()
    estimator.demand(exchange, to(ROUTE))
    estimator.take_due()

    estimator.teach(exchange, FACT)

    assert estimator.take_due() == {APP: {ROUTE: known(1, 50, 300)}}


def test_idle_pair_is_forgotten() -> None:
    estimator = Estimator()
    estimator.demand(asking(), to(ROUTE))
    for _ in range(IDLE_LOOKS + SWEEP_LOOKS):
        estimator.take_due()

    assert estimator.pairs == 0


def test_pairs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAIRS", 1)
    estimator = Estimator()
    estimator.demand(asking(), to(ROUTE))

    assert estimator.demand(asking(), to(OTHER)) is GUESS
    assert estimator.pairs == 1


def test_client_is_held_to_the_largest_estimate_of_its_routes() -> None:
    estimator, both = Estimator(), asking(routes=(ROUTE, OTHER))
    estimator.demand(asking(), to(ROUTE))
    assert estimator.largest(both, Allowance()) == GUESS

    estimator.take_over(APP, {ROUTE: known(1000, 300, 250)}, POLICY)

    largest = estimator.largest(both, Allowance())
    assert largest.input_tokens > 290
    assert largest.output_tokens == 1000
    assert OTHER not in estimator.take_due()[APP], "a look is not a use"
