"""Errors as answers: status, headers and the body in the caller's dialect."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.core.outcome.error_codes import ERROR_CODES
from cluster_gw.core.routing.resolution import NameProblem
from cluster_gw.core.routing.wishes import NameFault
from cluster_gw.errors import ErrorBody
from cluster_gw.pipeline.headers import JSON_TYPE, identity_headers
from cluster_gw.pipeline.reply import Headers, Reply
from cluster_gw.pipeline.vendor_headers import id_headers
from cluster_gw.surfaces.base import Surface
from cluster_gw.units import MS_PER_S
from cluster_gw.wire.redact import without_keys
from cluster_gw.wire.retry_headers import retry_headers

SHOWN_CHARACTERS: Final = 128
NAME_FAULTS: Final[Mapping[NameProblem, tuple[str, str]]] = MappingProxyType(
    {
        NameProblem.UNKNOWN: (
            "model_not_found",
            "The model {} does not exist; GET /v1/models lists what does.",
        ),
        NameProblem.DISABLED: (
            "model_not_found",
            "The model {} is disabled in the catalogue; GET /v1/models lists what is not.",
        ),
        NameProblem.NOT_ALLOWED: ("model_not_allowed", "This API key may not use the model {}."),
        NameProblem.EMPTY: (
            "empty_profile",
            "The profile {} has no enabled model; enable one, or ask for a model by name.",
        ),
        NameProblem.EMBEDS: (
            "embedding_model",
            "The model {} makes embeddings and answers no chat; ask it at /v1/embeddings.",
        ),
        NameProblem.NO_EMBEDDING: (
            "not_an_embedding_model",
            "The model {} makes no embeddings; GET /v1/models marks those that do.",
        ),
        NameProblem.NO_PROVIDER: (
            "no_allowed_provider",
            "No provider of the model {} is left by provider.only and provider.ignore.",
        ),
    }
)


async def send_error(
    reply: Reply,
    surface: Surface,
    error: ErrorBody,
    *,
    label: str,
    request_id: str,
    extra: Headers = (),
) -> None:
    """Send an error before anything else has been sent.

    Some quote the client's own words, and one may have put a key where a name belongs.
    """
    message = without_keys(error.message)
    if message != error.message:
        error = msgspec.structs.replace(error, message=message)
    headers = [
        *identity_headers(label, request_id),
        *id_headers(surface.dialect, request_id),
        JSON_TYPE,
        *retry_headers(error),
        *extra,
    ]
    await reply.whole(surface.status_of(error), headers, surface.encode_error(error, request_id))


def method_not_allowed(method: str, path: str) -> ErrorBody:
    """The error of a path that has other methods."""
    return ErrorBody(
        status=405,
        type="invalid_request_error",
        code="method_not_allowed",
        message=f"{method} is not allowed on {path[:SHOWN_CHARACTERS]}.",
    )


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


def name_fault(fault: NameFault) -> ErrorBody:
    """The error of a name that this client gets nothing by."""
    code, words = NAME_FAULTS[fault.problem]
    known = ERROR_CODES[code]
    return ErrorBody(
        status=known.status,
        type=known.type,
        code=code,
        param=fault.param,
        message=words.format(f"'{fault.name[:SHOWN_CHARACTERS]}'"),
    )


def answer_not_found() -> ErrorBody:
    """The error of a request that goes on from an answer which this client cannot go on from."""
    return ErrorBody(
        status=404,
        type="invalid_request_error",
        code="response_not_found",
        param="previous_response_id",
        message="No upstream of this model keeps an answer of this id for this API key, or not any "
        "more; leave out previous_response_id and send the whole conversation as input.",
    )


def model_not_found(model: str) -> ErrorBody:
    """The error of a name that nothing has."""
    return name_fault(NameFault(problem=NameProblem.UNKNOWN, name=model, param="model"))
