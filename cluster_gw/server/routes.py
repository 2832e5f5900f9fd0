"""The ASGI application of the data port: hot route first, a clear answer on every other path."""

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ErrorBody
from cluster_gw.server.inference import Deps, Inference
from cluster_gw.server.listing import Models
from cluster_gw.surfaces import SURFACES
from cluster_gw.surfaces.chat_completions import ChatCompletions

VENDOR_PREFIXES: Final = ("/v1/", "/v1beta/")

Handler = Callable[[Request, Exception], Awaitable[Response]]


def build_app(deps: Deps) -> Starlette:
    """Assemble the routes of the data port."""
    models = Models(deps)
    app = Starlette(
        routes=[
            *(
                Route(path, Inference(surface, deps), methods=["POST"])
                for path, surface in SURFACES.items()
            ),
            Route("/v1/models", models, methods=["GET"]),
            Route("/v1/models/{model:path}", models, methods=["GET"]),
        ],
        exception_handlers={404: _handler(deps), 405: _handler(deps)},
    )
    app.router.redirect_slashes = False
    return app


def _handler(deps: Deps) -> Handler:
    surface = ChatCompletions()

    async def answer(request: Request, exc: Exception) -> Response:
        status = exc.status_code if isinstance(exc, HTTPException) else 500
        allowed = (exc.headers or {}) if isinstance(exc, HTTPException) else {}
        error = _unrouted(request.url.path, request.method, status)
        request_id = deps.mint_id()
        return Response(
            surface.encode_error(error, request_id),
            status_code=error.status,
            headers={**allowed, "x-request-id": request_id, "x-gw-request-id": request_id},
            media_type="application/json",
        )

    return answer


def _unrouted(path: str, method: str, status: int) -> ErrorBody:
    shown = path[:128]
    if status == 405:  # noqa: PLR2004
        return ErrorBody(
            status=405,
            type="invalid_request_error",
            code="method_not_allowed",
            message=f"{method} is not allowed on {shown}.",
        )
    if path.startswith(VENDOR_PREFIXES):
        return ErrorBody(
            status=404,
            type="invalid_request_error",
            code="surface_not_supported",
            message=f"{shown} is not served here; /v1/chat/completions and /v1/models are.",
        )
    return ErrorBody(
        status=404,
        type="invalid_request_error",
        code="not_found",
        message=f"Nothing is served at {shown}.",
    )
