"""Errors as answers: status, headers and the body in the caller's dialect."""

from typing import Final

from cluster_gw.errors import ErrorBody
from cluster_gw.pipeline.headers import JSON_TYPE, identity_headers
from cluster_gw.pipeline.reply import Headers, Reply
from cluster_gw.surfaces.base import Surface
from cluster_gw.units import MS_PER_S

WAIT_STATUSES: Final = frozenset({429, 503})
FIRST_SERVER_ERROR: Final = 500
NO_RETRY: Final = (b"x-should-retry", b"false")


async def send_error(
    reply: Reply,
    surface: Surface,
    error: ErrorBody,
    *,
    label: str,
    request_id: str,
    extra: Headers = (),
) -> None:
    """Send an error before anything else has been sent."""
    headers = [*identity_headers(label, request_id), JSON_TYPE, *retry_headers(error), *extra]
    await reply.whole(error.status, headers, surface.encode_error(error, request_id))


def retry_headers(error: ErrorBody) -> list[tuple[bytes, bytes]]:
    """`Retry-After` in whole seconds, rounded up, and in ms beside it; on every 429 and 503.

    SDKs repeat every 5xx by themselves; one that would only fail again tells them not to.
    """
    wait_ms = error.retry_after_ms
    if wait_ms is None:
        if error.status not in WAIT_STATUSES:
            return [NO_RETRY] if error.status >= FIRST_SERVER_ERROR and not error.retryable else []
        wait_ms = MS_PER_S
    seconds = max(1, -(-wait_ms // MS_PER_S))
    return [(b"retry-after", b"%d" % seconds), (b"retry-after-ms", b"%d" % wait_ms)]


def internal_error() -> ErrorBody:
    """The error of a bug; its details are in the log under the request id."""
    return ErrorBody(
        status=500,
        type="server_error",
        code="internal_error",
        message="The gateway failed on this request; the operator finds it under the request id.",
    )


def draining_error() -> ErrorBody:
    """The error of a worker that is shutting down."""
    return ErrorBody(
        status=503,
        type="service_unavailable",
        code="draining",
        message="This worker is shutting down; repeat the request.",
        retryable=True,
        retry_after_ms=MS_PER_S,
    )


def model_not_found(model: str) -> ErrorBody:
    """The error of a name that nothing has."""
    return ErrorBody(
        status=404,
        type="invalid_request_error",
        code="model_not_found",
        param="model",
        message=f"The model '{model[:128]}' does not exist; GET /v1/models lists what does.",
    )


def model_not_allowed(model: str) -> ErrorBody:
    """The error of a name that exists but not for this client."""
    return ErrorBody(
        status=403,
        type="permission_error",
        code="model_not_allowed",
        param="model",
        message=f"This API key may not use the model '{model[:128]}'.",
    )
