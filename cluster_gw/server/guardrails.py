"""What an operator's bounds make of a request before it is ranked (room 3)."""

import msgspec

from cluster_gw.canonical.request import ChatRequest
from cluster_gw.core.limits.guardrails import Guardrails, OverBudget, bound_output
from cluster_gw.errors import ErrorBody


def bounded_request(rails: Guardrails, request: ChatRequest) -> ChatRequest | ErrorBody:
    """Give the request as it goes on, or the error of one that is above the budget."""
    bound = bound_output(rails, request)
    if isinstance(bound, OverBudget):
        return over_budget(bound, rails.budget_tokens)
    if bound == request.max_tokens:
        return request
    return msgspec.structs.replace(request, max_tokens=bound, is_bounded=True)


def over_budget(asked: OverBudget, budget_tokens: int) -> ErrorBody:
    """The error of a request above the budget."""
    return ErrorBody(
        status=413,
        type="invalid_request_error",
        code="request_token_budget",
        param="max_tokens",
        message=f"About {asked.input_tokens} tokens of input and {asked.output_tokens} of output "
        f"are above the {budget_tokens} that one request may take; shorten it or lower max_tokens.",
    )
