from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.embedding import EmbeddingAsk
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.core.limits.demand import Demand, estimate_demand, estimate_tokens, longest_input


def request(**change: Any) -> ChatRequest:
    return ChatRequest(dialect=Dialect.OPENAI, model="m", stream=False, fields={}, **change)


@pytest.mark.parametrize(
    ("change", "demand"),
    [
        ({}, Demand(input_tokens=0, output_tokens=1000)),
        ({"input_characters": (1,)}, Demand(input_tokens=1, output_tokens=1000)),
        ({"input_characters": (5, 5)}, Demand(input_tokens=4, output_tokens=1000)),
        ({"input_characters": (10,)}, Demand(input_tokens=3, output_tokens=1000)),
        ({"image_count": 2}, Demand(input_tokens=2000, output_tokens=1000)),
        ({"max_tokens": 7}, Demand(input_tokens=0, output_tokens=7)),
        ({"max_tokens": 2000}, Demand(input_tokens=0, output_tokens=2000)),
        ({"max_tokens": 100_000}, Demand(input_tokens=0, output_tokens=2000)),
        ({"max_tokens": 300, "choices": 3}, Demand(input_tokens=0, output_tokens=900)),
    ],
)
def test_demand_follows_the_published_arithmetic(change: dict[str, Any], demand: Demand) -> None:
    assert estimate_demand(request(**change)) == demand


@given(
    characters=st.lists(st.integers(0, 10**6), max_size=20),
    images=st.integers(0, 20),
    max_tokens=st.none() | st.integers(1, 10**6),
    choices=st.integers(1, 8),
)
def test_demand_is_bounded_and_grows_with_the_request(
    characters: list[int], images: int, max_tokens: int | None, choices: int
) -> None:
    small = request(
        input_characters=tuple(characters),
        image_count=images,
        max_tokens=max_tokens,
        choices=choices,
    )
    large = request(
        input_characters=(*characters, 4),
        image_count=images + 1,
        max_tokens=max_tokens,
        choices=choices + 1,
    )

    demand, more = estimate_demand(small), estimate_demand(large)

    assert 0 <= demand.output_tokens <= 2000 * choices
    assert demand.input_tokens >= sum(characters) / 4
    assert more.input_tokens == demand.input_tokens + 1001
    assert more.output_tokens > demand.output_tokens
    assert demand.total_tokens == demand.input_tokens + demand.output_tokens


@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (4001, 1001)])
def test_unreported_text_is_a_quarter_of_its_characters(characters: int, tokens: int) -> None:
    assert estimate_tokens(characters) == tokens


@pytest.mark.parametrize(("given", "safe"), [(0, 100), (1, 102), (4, 105), (400, 600)])
def test_a_safe_estimate_has_a_quarter_more_of_input_and_none_of_output(
    given: int, safe: int
) -> None:
    assert Demand(input_tokens=given, output_tokens=100).safe_tokens == safe


def test_vectors_are_no_output() -> None:
    texts = request(embedding=EmbeddingAsk(count=2), input_characters=(5, 400))
    numbers = request(embedding=EmbeddingAsk(count=2, token_counts=(7, 9)))

    assert estimate_demand(texts) == Demand(input_tokens=102, output_tokens=0)
    assert estimate_demand(numbers) == Demand(input_tokens=16, output_tokens=0)
    assert (longest_input(texts), longest_input(numbers)) == (100, 9)
