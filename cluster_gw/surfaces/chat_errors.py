"""The error object of OpenAI's dialect."""

from typing import Any

from cluster_gw.errors import ErrorBody
from cluster_gw.wire.json_codec import write


def error_body(error: ErrorBody, request_id: str) -> bytes:
    """The body of an error answer, and the payload of the event that ends a broken stream."""
    return write({"error": error_json(error, request_id)})


def error_json(error: ErrorBody, request_id: str) -> dict[str, Any]:
    """The error object; `param` and `code` are always there because SDKs read them."""
    return {
        "message": error.message,
        "type": error.type,
        "code": error.code,
        "param": error.param,
        "request_id": request_id,
        "retryable": error.retryable,
        **known_members(error),
    }


def known_members(error: ErrorBody) -> dict[str, Any]:
    """The members of an error in every dialect that are there only when something is known."""
    members: dict[str, Any] = {
        "retry_after_ms": error.retry_after_ms,
        "cause": error.cause,
        "combo": error.combo,
        "attempts": list(error.attempts) or None,
        "skipped": list(error.skipped) or None,
    }
    return {name: value for name, value in members.items() if value is not None}
