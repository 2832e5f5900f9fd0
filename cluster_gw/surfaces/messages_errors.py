"""The error object of Anthropic's dialect, and the statuses its clients know."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.chat_errors import error_json
from cluster_gw.wire.json_codec import write

UNAVAILABLE: Final = 503
OVERLOADED: Final = 529
FIRST_CLIENT_ERROR: Final = 400  # what only a stream tells has a lower one
FIRST_SERVER_ERROR: Final = 500
TYPES: Final[Mapping[int, str]] = MappingProxyType(
    {
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        503: "overloaded_error",
        504: "timeout_error",
    }
)
"""The vendor's word by our status; others below 500 are `invalid_request_error`."""


def vendor_type(status: int) -> str:
    """What the vendor calls an error of this status of ours."""
    is_clients = FIRST_CLIENT_ERROR <= status < FIRST_SERVER_ERROR
    return TYPES.get(status, "invalid_request_error" if is_clients else "api_error")


def vendor_status(status: int) -> int:
    """The status its clients are told: it has a number of its own for a service that is full."""
    return OVERLOADED if status == UNAVAILABLE else status


def messages_error_json(error: ErrorBody, request_id: str) -> dict[str, Any]:
    """The document: the vendor's members first, ours beside them."""
    inner = error_json(error, request_id)
    inner["type"] = vendor_type(error.status)
    return {"type": "error", "error": inner, "request_id": request_id}


def messages_error_body(error: ErrorBody, request_id: str) -> bytes:
    """The body of an error answer, and the payload of the event that ends a broken stream."""
    return write(messages_error_json(error, request_id))
