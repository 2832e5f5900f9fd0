"""Bounds that an operator sets on what one request may cost, before anything is ranked (room 3)."""

from typing import Final

import msgspec

from cluster_gw.canonical.request import ChatRequest
from cluster_gw.core.limits.demand import estimate_demand

AUTO_OUTPUT_TOKENS: Final = 32_768
DEFAULT_OUTPUT_TOKENS: Final = 4096  # of a request that names no bound, where there is a budget


class Guardrails(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator bounds.

    Attributes:
        budget_tokens: input by estimate and output together; 0 sets no bound.
        most_output_tokens: what a client's own bound is lowered to; None leaves it.
        checks_tool_arguments: tool calls are held against the schemas the client declared.
    """

    budget_tokens: int = 0
    most_output_tokens: int | None = None
    checks_tool_arguments: bool = False

    @property
    def bounds_output(self) -> bool:
        """Whether any request may be changed or refused."""
        return self.budget_tokens > 0 or self.most_output_tokens is not None


class OverBudget(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is above the budget, in tokens."""

    input_tokens: int
    output_tokens: int


def bound_output(rails: Guardrails, request: ChatRequest) -> int | OverBudget | None:
    """Tell the bound of the output the request goes on with, in tokens for each choice.

    A bound is lowered, never raised. One is added only where there is a budget: a model may refuse
    a bound above its own, so none is made up without need.

    Returns:
        The bound, None for none; or what is over the budget. An exact fit passes.
    """
    if request.embedding is not None:
        return without_output(rails, request)
    output = request.max_tokens
    if output is not None and rails.most_output_tokens is not None:
        output = min(output, rails.most_output_tokens)
    if not rails.budget_tokens:
        return output
    known = estimate_demand(request).input_tokens
    left = (rails.budget_tokens - known) // request.choices
    if output is None:
        output = min(left, DEFAULT_OUTPUT_TOKENS, rails.most_output_tokens or left)
    if output > left or output < 1:
        return OverBudget(input_tokens=known, output_tokens=max(output, 1) * request.choices)
    return output


def without_output(rails: Guardrails, request: ChatRequest) -> OverBudget | None:
    """Tell what is over the budget of a request that has an input alone; None when nothing is."""
    known = estimate_demand(request).input_tokens
    is_above = 0 < rails.budget_tokens < known
    return OverBudget(input_tokens=known, output_tokens=0) if is_above else None
