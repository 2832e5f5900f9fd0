"""Errors as answers: status, headers and the body in the caller's dialect."""

from cluster_gw.errors import ErrorBody
from cluster_gw.pipeline.headers import JSON_TYPE, identity_headers
from cluster_gw.pipeline.reply import Headers, Reply
from cluster_gw.surfaces.base import Surface
from cluster_gw.units import MS_PER_S
from cluster_gw.wire.retry_headers import retry_headers


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
