"""What tokens cost: integer millionths of a dollar, so that sums stay exact in Redis."""

import math

import msgspec


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """USD per million tokens, which is micro-USD per token; what is not known costs nothing."""

    input: float = 0.0
    output: float = 0.0


FREE = Price()
NANO_PER_MICRO = 1000


def cost_nano_usd(price: Price, *, input_tokens: int, output_tokens: int) -> int:
    """Tell what these tokens cost, to the nearest nano-USD, so that sums are exact."""
    return round((price.input * input_tokens + price.output * output_tokens) * NANO_PER_MICRO)


def cost_micro_usd(price: Price, *, input_tokens: int, output_tokens: int) -> int:
    """Tell what these tokens cost, rounded up to a whole micro-USD."""
    if price == FREE:
        return 0
    exact = price.input * input_tokens + price.output * output_tokens
    # Nine digits are far below what a price is known to; without them 0.1 * 3 would cost 1 more.
    return math.ceil(round(exact, 9))
