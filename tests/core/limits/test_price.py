import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.price import FREE, Price, cost_micro_usd

PRICES = st.builds(Price, input=st.floats(0, 1e4), output=st.floats(0, 1e4))
COUNTS = st.integers(0, 10**7)


@pytest.mark.parametrize(
    ("price", "input_tokens", "output_tokens", "cost"),
    [
        (Price(input=3, output=15), 1000, 100, 4500),
        (Price(input=0.1), 3, 0, 1),
        (Price(input=0.1), 30, 0, 3),
        (Price(output=0.05), 0, 1, 1),
        (Price(output=0.05), 0, 0, 0),
        (FREE, 10**6, 10**6, 0),
    ],
)
def test_cost_is_whole_micro_dollars_rounded_up(
    price: Price, input_tokens: int, output_tokens: int, cost: int
) -> None:
    assert cost_micro_usd(price, input_tokens=input_tokens, output_tokens=output_tokens) == cost


@given(price=PRICES, input_tokens=COUNTS, output_tokens=COUNTS)
def test_cost_is_at_least_the_exact_price_and_less_than_one_above(
    price: Price, input_tokens: int, output_tokens: int
) -> None:
    exact = price.input * input_tokens + price.output * output_tokens

    cost = cost_micro_usd(price, input_tokens=input_tokens, output_tokens=output_tokens)

    assert exact - 1e-6 * max(1.0, exact) <= cost <= exact + 1 + 1e-6 * max(1.0, exact)
