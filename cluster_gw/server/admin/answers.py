"""Answers of the admin API: lists, single things, and errors in the one shape."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from cluster_gw.errors import (
    ClientFault,
    ErrorBody,
    GatewayError,
    RecordUnreadableError,
    StoreLostError,
)
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.answers import internal_error, method_not_allowed
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.refusals import refused
from cluster_gw.telemetry import events
from cluster_gw.units import MS_PER_S
from cluster_gw.wire.json_codec import (
    InvalidJsonError,
    UnexpectedShapeError,
    nests_deeper,
    read_any,
    write,
)
from cluster_gw.wire.retry_headers import retry_headers

JSON: Final = "application/json"
MAX_DEPTH: Final = 32  # as in a file of the configuration; what is taken has half a dozen
METHOD_NOT_ALLOWED: Final = 405
READING: Final = frozenset({"GET", "HEAD"})
ASKING: Final = frozenset({("POST", "/api/explain")})
"""Calls that change nothing although their method could."""

Answer = Callable[[Request, Exception], Awaitable[Response]]


def listed(items: Sequence[Any], config_version: int) -> Response:
    """Answer with a list; `config_version` is what a write sends as `If-Match`."""
    return told({"items": items}, config_version)


def told(
    content: Mapping[str, Any],
    config_version: int,
    status: int = 200,
    warnings: Sequence[str] = (),
) -> Response:
    """Answer with one thing and the version of the configuration it belongs to.

    Args:
        content: the thing.
        config_version: that version.
        status: of the answer.
        warnings: what its writer should see although the change holds.
    """
    more = {"warnings": warnings} if warnings else {}
    body = write({**content, **more, "config_version": config_version})
    return Response(body, status, {"etag": f'"{config_version}"'}, media_type=JSON)


async def read_object(request: Request) -> dict[str, Any]:
    """Read the body, which has to be a JSON object; an empty one is an empty object.

    Raises:
        ClientFault: it is something else.
    """
    document = await read_json(request)
    if not isinstance(document, dict):
        raise ClientFault(invalid("the body has to be a JSON object"))
    return document


async def read_json(request: Request) -> Any:
    """Read the body, which has to be JSON; an empty one is an empty object.

    Raises:
        ClientFault: it is something else, or nested deeper than anything an endpoint takes.
    """
    body = await request.body()
    try:
        document = read_any(body) if body.strip() else {}
    except (InvalidJsonError, UnexpectedShapeError) as fault:
        raise ClientFault(not_json(str(fault))) from None
    if nests_deeper(document, MAX_DEPTH):
        raise ClientFault(invalid(f"the body is nested deeper than {MAX_DEPTH} levels"))
    return document


def not_json(problem: str) -> ErrorBody:
    """The error of a body that is no JSON."""
    return refused("invalid_json", problem, None)


def invalid(message: str, param: str | None = None) -> ErrorBody:
    """The error of a call that cannot be done as it is."""
    return refused("invalid_request", message, param)


def nothing_called(kind: str, name: str) -> GatewayError:
    """The error of a name that nothing of that kind has."""
    return ClientFault(
        ErrorBody(
            status=404,
            type="invalid_request_error",
            code="not_found",
            message=f"there is no {kind} '{name[:128]}'",
        )
    )


def answers_to_faults(desk: Desk) -> dict[Any, Answer]:
    """Everything an endpoint may raise, as an answer."""

    async def gateway_error(_request: Request, fault: Exception) -> Response:
        body = fault.body if isinstance(fault, GatewayError) else internal_error()
        return _error(desk, body)

    async def redis_lost(request: Request, fault: Exception) -> Response:
        is_there = isinstance(fault, RecordUnreadableError)
        if is_there:
            return _error(desk, record_unreadable())
        asks = request.method in READING or (request.method, request.url.path) in ASKING
        return _error(desk, redis_silent() if asks else redis_away())

    async def unrouted(request: Request, fault: Exception) -> Response:
        status = fault.status_code if isinstance(fault, HTTPException) else 500
        allowed = (fault.headers or {}) if isinstance(fault, HTTPException) else {}
        return _error(desk, _unrouted(request, status), allowed)

    async def crashed(_request: Request, fault: Exception) -> Response:
        request_id = desk.deps.mint_id()
        name = type(fault).__name__
        desk.deps.log.event(events.REQUEST_CRASHED, request_id=request_id, exception=name)
        return _error(desk, internal_error(), request_id=request_id)

    return {
        GatewayError: gateway_error,
        StoreLostError: redis_lost,
        HTTPException: unrouted,
        Exception: crashed,
    }


def redis_away() -> ErrorBody:
    """The error of a call that needs Redis while it is away."""
    return ErrorBody(
        status=503,
        type="service_unavailable",
        code="redis_lost",
        message="Redis did not answer; nothing is known to be changed. Look before you repeat.",
        retryable=True,
        retry_after_ms=MS_PER_S,
    )


def redis_silent(server: str = "Redis") -> ErrorBody:
    """The error of a question that a Redis does not answer.

    Args:
        server: which one.
    """
    return msgspec.structs.replace(
        redis_away(), message=f"{server} did not answer; what was asked for could not be read"
    )


def record_unreadable() -> ErrorBody:
    """The error of a call that needs a record somebody else has written to."""
    return ErrorBody(
        status=503,
        type="service_unavailable",
        code="record_unreadable",
        message="a record in Redis is not as the gateway writes it; the log names it",
        retry_after_ms=MS_PER_S,
    )


def _error(
    desk: Desk, body: ErrorBody, more: Mapping[str, str] | None = None, request_id: str = ""
) -> Response:
    name = request_id or desk.deps.mint_id()
    headers = {k.decode(): v.decode() for k, v in retry_headers(body)}
    headers |= {"x-request-id": name, "x-gw-request-id": name, **(more or {})}
    return Response(
        ChatCompletions().encode_error(body, name), body.status, headers, media_type=JSON
    )


def _unrouted(request: Request, status: int) -> ErrorBody:
    path = request.url.path[:128]
    if status == METHOD_NOT_ALLOWED:
        return method_not_allowed(request.method, path)
    return ErrorBody(
        status=404,
        type="invalid_request_error",
        code="not_found",
        message=f"the admin API has nothing at {path}",
    )
