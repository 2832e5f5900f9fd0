"""The error object of Gemini's dialect, which is that of all of Google's APIs (AIP-193)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.chat_errors import known_members
from cluster_gw.units import MS_PER_S
from cluster_gw.wire.json_codec import write

DOMAIN: Final = "cluster-gw"
TYPES: Final = "type.googleapis.com/google.rpc."
FIRST_ERROR: Final = 400
BROKEN: Final = 500  # an error that is told inside a stream has no status of its own
WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        402: "RESOURCE_EXHAUSTED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        405: "UNIMPLEMENTED",
        408: "DEADLINE_EXCEEDED",
        409: "ABORTED",
        412: "FAILED_PRECONDITION",
        413: "INVALID_ARGUMENT",
        415: "INVALID_ARGUMENT",
        422: "INVALID_ARGUMENT",
        429: "RESOURCE_EXHAUSTED",
        431: "INVALID_ARGUMENT",
        499: "CANCELLED",
        500: "INTERNAL",
        502: "UNAVAILABLE",
        503: "UNAVAILABLE",
        504: "DEADLINE_EXCEEDED",
    }
)


def error_body(error: ErrorBody, request_id: str) -> bytes:
    """The body of an error answer, and the payload of the frame that ends a broken stream."""
    return write({"error": error_json(error, request_id)})


def error_json(error: ErrorBody, request_id: str) -> dict[str, Any]:
    """The error object; `code` is the status here, and our stable word is `reason`."""
    status = error.status if error.status >= FIRST_ERROR else BROKEN
    body: dict[str, Any] = {
        "code": status,
        "message": error.message,
        "status": WORDS.get(status, "UNKNOWN"),
        "details": details_of(error, request_id),
        "reason": error.code,
        "type": error.type,
        "request_id": request_id,
        "retryable": error.retryable,
    }
    if error.param is not None:
        body["param"] = error.param
    return body | known_members(error)


def details_of(error: ErrorBody, request_id: str) -> list[dict[str, Any]]:
    """What Google's own clients look for: why, when to come back, what is wrong."""
    details: list[dict[str, Any]] = [
        {
            "@type": f"{TYPES}ErrorInfo",
            "reason": error.code.upper(),
            "domain": DOMAIN,
            "metadata": {"request_id": request_id},
        }
    ]
    if error.retry_after_ms is not None:
        wait_s = error.retry_after_ms / MS_PER_S
        details.append({"@type": f"{TYPES}RetryInfo", "retryDelay": f"{wait_s:.3f}s"})
    if error.param is not None:
        violation = {"field": error.param, "description": error.message}
        details.append({"@type": f"{TYPES}BadRequest", "fieldViolations": [violation]})
    return details
