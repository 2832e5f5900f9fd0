import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.embedding import EmbeddingAsk
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.core.limits.demand import estimate_demand
from cluster_gw.core.limits.guardrails import Guardrails, OverBudget, bound_output

REQUEST = ChatRequest(dialect=Dialect.OPENAI, model="m", stream=False, fields={})


def asking(max_tokens: int | None, *, input_tokens: int = 100, choices: int = 1) -> ChatRequest:
    return msgspec.structs.replace(
        REQUEST, max_tokens=max_tokens, input_characters=(4 * input_tokens,), choices=choices
    )


@pytest.mark.parametrize(
    ("rails", "max_tokens", "expected"),
    [
        (Guardrails(), None, None),
        (Guardrails(), 99_999, 99_999),
        (Guardrails(most_output_tokens=50), 99, 50),
        (Guardrails(most_output_tokens=50), 50, 50),
        (Guardrails(most_output_tokens=50), 10, 10),
        (Guardrails(most_output_tokens=50), None, None),
        (Guardrails(budget_tokens=300), 200, 200),
        (Guardrails(budget_tokens=300), 201, OverBudget(input_tokens=100, output_tokens=201)),
        (Guardrails(budget_tokens=300), None, 200),
        (Guardrails(budget_tokens=100_000), None, 4096),
        (Guardrails(budget_tokens=101), None, 1),
        (Guardrails(budget_tokens=100), None, OverBudget(input_tokens=100, output_tokens=1)),
        (Guardrails(budget_tokens=50), 1, OverBudget(input_tokens=100, output_tokens=1)),
        (Guardrails(budget_tokens=300, most_output_tokens=50), 9_999, 50),
        (Guardrails(budget_tokens=300, most_output_tokens=50), None, 50),
    ],
)
def test_bound_is_lowered_refused_or_added_as_the_operator_says(
    rails: Guardrails, max_tokens: int | None, expected: int | OverBudget | None
) -> None:
    assert bound_output(rails, asking(max_tokens)) == expected


def test_every_answer_of_several_counts() -> None:
    rails = Guardrails(budget_tokens=300)

    assert bound_output(rails, asking(66, choices=3)) == 66
    assert bound_output(rails, asking(67, choices=3)) == OverBudget(
        input_tokens=100, output_tokens=201
    )
    assert bound_output(rails, asking(None, choices=3)) == 66


@given(
    budget=st.integers(0, 20_000),
    most=st.none() | st.integers(1, 20_000),
    asked=st.none() | st.integers(1, 20_000),
    input_tokens=st.integers(0, 20_000),
    choices=st.integers(1, 8),
)
def test_whatever_goes_on_fits_and_was_not_raised(
    budget: int, most: int | None, asked: int | None, input_tokens: int, choices: int
) -> None:
    request = asking(asked, input_tokens=input_tokens, choices=choices)
    known = estimate_demand(request).input_tokens

    bound = bound_output(Guardrails(budget_tokens=budget, most_output_tokens=most), request)

    if isinstance(bound, OverBudget):
        assert budget
        assert known + bound.output_tokens > budget
    elif bound is None:
        assert asked is None
        assert not budget
    else:
        assert 1 <= bound <= (asked or bound)
        assert most is None or bound <= most
        assert not budget or known + bound * choices <= budget


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(0, None), (100, None), (99, OverBudget(input_tokens=100, output_tokens=0))],
)
def test_embeddings_have_no_output_to_bound(budget: int, expected: OverBudget | None) -> None:
    request = msgspec.structs.replace(asking(None), embedding=EmbeddingAsk(count=1))

    rails = Guardrails(budget_tokens=budget, most_output_tokens=5)
    assert bound_output(rails, request) == expected
