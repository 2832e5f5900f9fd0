"""Every error code a client can see, its status and meaning; `docs/errors.md` is made of it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec


class ErrorCode(msgspec.Struct, frozen=True):
    """One line of the table.

    Attributes:
        status: HTTP status; 200 for what is told inside a stream only.
        type: coarse word, in OpenAI's vocabulary where it has one.
        meaning: what happened and what the reader can do.
    """

    status: int
    type: str
    meaning: str


INVALID: Final = "invalid_request_error"
UNAVAILABLE: Final = "service_unavailable"
PROVIDER: Final = "provider_error"
LIMIT: Final = "rate_limit_error"

ERROR_CODES: Final[Mapping[str, ErrorCode]] = MappingProxyType(
    {
        # The request.
        "invalid_json": ErrorCode(
            400, INVALID, "The body is no JSON object in UTF-8; send a JSON object."
        ),
        "invalid_request": ErrorCode(
            400, INVALID, "A member of the body is missing or wrong; `param` names it."
        ),
        "invalid_header": ErrorCode(400, INVALID, "A request header of the gateway is unreadable."),
        "empty_profile": ErrorCode(
            400, INVALID, "The profile, or the default combo, has no enabled model; name another."
        ),
        "embedding_model": ErrorCode(
            400, INVALID, "A chat was asked of a model that makes embeddings; name another."
        ),
        "not_an_embedding_model": ErrorCode(
            400, INVALID, "Embeddings were asked of a model that makes none; name another."
        ),
        "malformed_http": ErrorCode(400, INVALID, "The bytes are no HTTP request."),
        "missing_api_key": ErrorCode(
            401, "authentication_error", "No gateway key was sent; send it as a Bearer token."
        ),
        "invalid_api_key": ErrorCode(
            401, "authentication_error", "The gateway does not know this key."
        ),
        "too_many_invalid_keys": ErrorCode(
            429, LIMIT, "This address sent too many requests without a valid key; wait as told."
        ),
        "invalid_admin_token": ErrorCode(
            401, "authentication_error", "The admin API needs `GW_ADMIN_TOKEN` as a Bearer token."
        ),
        "admin_disabled": ErrorCode(
            403, "permission_error", "No `GW_ADMIN_TOKEN` of at least 32 characters is set."
        ),
        "model_not_allowed": ErrorCode(
            403, "permission_error", "This client may not use the model; the operator can allow it."
        ),
        "model_not_found": ErrorCode(
            404,
            INVALID,
            "Nothing has this model name, or no upstream of the combo has the model any more.",
        ),
        "no_allowed_provider": ErrorCode(
            404, INVALID, "The request's own `provider` leaves out every provider of the model."
        ),
        "not_found": ErrorCode(404, INVALID, "The gateway has no such path."),
        "response_not_found": ErrorCode(
            404, INVALID, "The request names an answer, a conversation or a file nobody keeps here."
        ),
        "surface_not_supported": ErrorCode(
            404, INVALID, "A vendor's path that this gateway does not serve."
        ),
        "method_not_allowed": ErrorCode(405, INVALID, "The path exists for another method."),
        "already_exists": ErrorCode(409, INVALID, "Admin API: something has this name already."),
        "no_master_key": ErrorCode(
            409, INVALID, "Admin API: a secret cannot be stored, as no `GW_MASTER_KEY` is set."
        ),
        "master_key_differs": ErrorCode(
            409, INVALID, "Admin API: some workers could not read a secret that was stored here."
        ),
        "idempotency_key_conflict": ErrorCode(
            409, INVALID, "The `Idempotency-Key` was used for another request; send a new one."
        ),
        "idempotency_key_in_use": ErrorCode(
            409, INVALID, "What became of the call with this `Idempotency-Key` is unknown; repeat."
        ),
        "config_conflict": ErrorCode(
            412, INVALID, "Admin API: the configuration has another version than `If-Match` names."
        ),
        "request_timeout": ErrorCode(408, "timeout_error", "The body did not arrive in time."),
        "request_too_large": ErrorCode(413, INVALID, "The body is above the configured bound."),
        "request_token_budget": ErrorCode(
            413, INVALID, "Input and output together are above the operator's budget of a request."
        ),
        "context_length_exceeded": ErrorCode(
            413, INVALID, "The prompt is too long for every candidate; shorten it."
        ),
        "unsupported_content_encoding": ErrorCode(
            415, INVALID, "The body is compressed in a way the gateway does not read."
        ),
        "unsupported_capability": ErrorCode(
            422, INVALID, "No model of the combo can do what the request needs; choose another."
        ),
        "headers_too_large": ErrorCode(431, INVALID, "The head of the request is above its bound."),
        "provider_rejected_request": ErrorCode(
            400, INVALID, "Every upstream refused the request as malformed; see `attempts`."
        ),
        # Capacity.
        "rate_limit_exceeded": ErrorCode(
            429, LIMIT, "Every candidate is at a limit or cooling down; retry after the given wait."
        ),
        "routing_exhausted": ErrorCode(
            429, LIMIT, "No candidate is usable now, for mixed reasons; see `skipped`."
        ),
        "no_eligible_providers": ErrorCode(
            503, UNAVAILABLE, "All capable candidates are disabled or have no usable key."
        ),
        "draining": ErrorCode(503, UNAVAILABLE, "This worker is shutting down; repeat the call."),
        "redis_lost": ErrorCode(
            503, UNAVAILABLE, "Limits cannot be known while Redis does not answer; retry shortly."
        ),
        "no_worker": ErrorCode(
            503, UNAVAILABLE, "Admin API: no worker of the group answers; nothing was done."
        ),
        "worker_silent": ErrorCode(
            504, "timeout_error", "Admin API: a worker took the call and did not answer in time."
        ),
        "record_unreadable": ErrorCode(
            503, UNAVAILABLE, "What Redis holds of every candidate cannot be read; see the log."
        ),
        "deadline_exceeded": ErrorCode(
            504, "timeout_error", "The client's own deadline passed before there was an answer."
        ),
        # The client's own limits.
        "client_rate_limited": ErrorCode(
            429, LIMIT, "The client is at a limit of its own; retry after the given wait."
        ),
        "client_budget_exceeded": ErrorCode(
            402, "insufficient_quota", "The client has used its budget of the calendar month, UTC."
        ),
        "client_request_too_large": ErrorCode(
            413, INVALID, "The request alone is above the client's tokens per minute."
        ),
        # Upstreams.
        "provider_authentication_failed": ErrorCode(
            502, PROVIDER, "Every upstream refused its key; the operator must replace keys."
        ),
        "provider_degraded": ErrorCode(
            503, UNAVAILABLE, "The last upstream says that its model is degraded."
        ),
        "upstream_unhealthy": ErrorCode(
            503, UNAVAILABLE, "Too many upstream failures in a row; the request gave up early."
        ),
        "upstream_failed": ErrorCode(502, PROVIDER, "Every attempt failed; see `attempts`."),
        "stream_interrupted": ErrorCode(
            200,
            "stream_error",
            "The stream broke after its start; what arrived is incomplete and not repeatable.",
        ),
        # The gateway.
        "internal_error": ErrorCode(500, "server_error", "A fault of the gateway; see its log."),
    }
)
