import math

from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.estimate import (
    HALF_LIFE_MS,
    MOST_REQUESTS,
    NOTHING,
    PLAIN,
    EstimatePolicy,
    Learned,
    Lesson,
    Ratios,
    add,
    correct,
    decay,
    raised_at_most,
    ratios_of,
)

BOUNDS = EstimatePolicy()
TOKENS = st.integers(0, 10**6)
GUESSES = st.builds(Demand, input_tokens=TOKENS, output_tokens=TOKENS)
FACTS = st.lists(st.tuples(GUESSES, TOKENS, TOKENS), max_size=30)
GUESS = Demand(input_tokens=100, output_tokens=1000)


def lesson(facts: list[tuple[Demand, int, int]]) -> Learned:
    taken = Lesson()
    for guess, input_tokens, output_tokens in facts:
        taken.note(guess, input_tokens, output_tokens)
    return taken.sums()


def steady(times: int, input_tokens: int, output_tokens: int) -> Learned:
    return lesson([(GUESS, input_tokens, output_tokens)] * times)


def close(one: Learned, other: Learned) -> bool:
    pairs = zip(numbers(one), numbers(other), strict=True)
    return all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6) for a, b in pairs)


def numbers(known: Learned) -> list[float]:
    sides = (known.input, known.output)
    return [
        known.requests,
        *(n for side in sides for n in (side.guessed, side.used, side.squares)),
    ]


def test_nothing_is_corrected_before_anything_was_learned() -> None:
    assert ratios_of(NOTHING, BOUNDS) == PLAIN
    assert correct(GUESS, PLAIN) == GUESS


@given(facts=FACTS)
def test_ratios_stay_within_their_bounds(facts: list[tuple[Demand, int, int]]) -> None:
    policy = EstimatePolicy(min_ratio=0.5, max_ratio=3.0)
    ratios = ratios_of(lesson(facts), policy)

    assert 0.5 <= ratios.input <= 3.0
    assert 0.5 <= ratios.output <= 3.0


@given(first=FACTS, second=FACTS)
def test_who_learns_apart_knows_the_same_together(
    first: list[tuple[Demand, int, int]], second: list[tuple[Demand, int, int]]
) -> None:
    together = add(lesson(first), lesson(second))

    assert close(together, lesson(first + second))
    assert close(together, add(lesson(second), lesson(first)))


@given(facts=FACTS, passed=st.integers(0, 10**9), more=st.integers(0, 10**9))
def test_decay_does_not_depend_on_how_often_somebody_looks(
    facts: list[tuple[Demand, int, int]], passed: int, more: int
) -> None:
    known = lesson(facts)

    assert close(decay(decay(known, passed), more), decay(known, passed + more))


def test_half_of_what_is_known_is_forgotten_in_a_day() -> None:
    assert close(decay(steady(8, 50, 500), HALF_LIFE_MS), steady(4, 50, 500))
    assert decay(steady(8, 50, 500), -1.0) == steady(8, 50, 500)


@given(facts=FACTS, passed=st.integers(0, 10**10))
def test_forgetting_brings_ratios_back_to_the_heuristic(
    facts: list[tuple[Demand, int, int]], passed: int
) -> None:
    known = lesson(facts)
    before, after = ratios_of(known, BOUNDS), ratios_of(decay(known, passed), BOUNDS)

    for now, then in ((after.input, before.input), (after.output, before.output)):
        assert abs(now - 1) <= abs(then - 1) + 1e-6


def test_steady_use_is_met_after_enough_requests() -> None:
    ratios = ratios_of(steady(MOST_REQUESTS, 130, 400), BOUNDS)

    assert abs(ratios.input - 1.3) < 0.01
    assert 0.4 < ratios.output < 0.42


def test_raising_takes_few_requests_and_lowering_many() -> None:
    raised, lowered = ratios_of(steady(3, 200, 500), BOUNDS), None
    lowered = raised.output

    assert raised.input > 1.5
    assert lowered > 0.9


@given(
    outputs=st.lists(st.integers(0, 16_000), min_size=50, max_size=200),
    times=st.integers(1, 4),
)
def test_an_estimate_holds_for_most_requests(outputs: list[int], times: int) -> None:
    facts = [(GUESS, 100, output) for output in outputs * times]
    estimate = correct(GUESS, ratios_of(lesson(facts), EstimatePolicy(max_ratio=100.0)))

    above = sum(output > estimate.output_tokens for output in outputs)
    assert above <= len(outputs) * 0.25  # Chebyshev: two deviations
    assert sum(outputs) <= estimate.output_tokens * len(outputs)


def test_one_absurd_report_does_not_rule_the_rest() -> None:
    known = add(steady(500, 100, 500), lesson([(GUESS, 100, 10**8)]))

    assert ratios_of(known, BOUNDS).output < 2.5


def test_new_ways_are_noticed_among_many_old_requests() -> None:
    known = NOTHING
    for _ in range(20):
        known = add(known, steady(500, 100, 250))
    for _ in range(4):
        known = add(known, steady(500, 100, 1500))

    assert known.requests == MOST_REQUESTS
    assert ratios_of(known, BOUNDS).output > 1.5


@given(guess=GUESSES, ratios=st.builds(Ratios, st.floats(0.25, 4), st.floats(0.25, 4)))
def test_a_guess_of_something_never_becomes_nothing(guess: Demand, ratios: Ratios) -> None:
    estimate = correct(guess, ratios)

    assert (estimate.input_tokens > 0) == (guess.input_tokens > 0)
    assert (estimate.output_tokens > 0) == (guess.output_tokens > 0)


@given(
    guess=GUESSES,
    ratios=st.builds(Ratios, st.floats(0.25, 4), st.floats(0.25, 4)),
    most=TOKENS,
)
def test_an_answer_is_never_guessed_longer_than_the_request_allows(
    guess: Demand, ratios: Ratios, most: int
) -> None:
    estimate = correct(guess, ratios, most_output_tokens=most)

    assert estimate.output_tokens <= max(most, guess.output_tokens)


LIMITS = st.lists(st.none() | st.integers(0, 10**7), max_size=5)


@given(
    guess=GUESSES,
    ratios=st.builds(Ratios, st.floats(0.25, 4), st.floats(0.25, 4)),
    limits=LIMITS,
)
def test_what_fits_by_the_heuristic_fits_by_what_was_learned(
    guess: Demand, ratios: Ratios, limits: list[int | None]
) -> None:
    estimate = correct(guess, ratios, most_tokens=raised_at_most(limits))

    for limit in limits:
        if limit is not None and guess.total_tokens <= limit:
            assert estimate.total_tokens <= limit
    assert estimate.input_tokens >= min(guess.input_tokens, guess.input_tokens * ratios.input)
    assert estimate.output_tokens >= min(guess.output_tokens, guess.output_tokens * ratios.output)


def test_estimates_are_raised_to_half_of_the_tightest_limit() -> None:
    assert raised_at_most([None, 9000, 601]) == 300
    assert raised_at_most([None]) is None
    assert correct(GUESS, Ratios(4.0, 4.0), most_tokens=1500) == Demand(
        input_tokens=400, output_tokens=1100
    )
