"""The ASGI application of the data port: hot route first, a clear answer on every other path."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.pipeline.reply import Send
from cluster_gw.server.body import Receive
from cluster_gw.server.gemini import CALLS, GeminiDoor, with_key_header
from cluster_gw.server.gemini import PREFIXES as GEMINI_PREFIXES
from cluster_gw.server.gemini import is_path as is_gemini_path
from cluster_gw.server.inference import Deps
from cluster_gw.server.listing import GOOGLE_HEADER, VERSION_HEADER, Models
from cluster_gw.server.token_counts import TokenCounts
from cluster_gw.server.tracing import inference_of
from cluster_gw.server.unserved import NO_SUCH_METHOD, unserved
from cluster_gw.server.versions import Endpoint, VersionDoor
from cluster_gw.surfaces import SURFACES
from cluster_gw.surfaces.base import Surface
from cluster_gw.surfaces.gemini import GenerateContent
from cluster_gw.surfaces.messages import CountedMessages

CHAT: Final = "/v1/chat/completions"
MESSAGES: Final = "/v1/messages"
GEMINI: Final = GenerateContent()  # of errors; each call has its own

LISTS: Final = ("/v1/models", "/v1beta/models")

Answer = Callable[[Request, Exception], Awaitable[Response]]


class FrontDoor:
    """Takes the hot routes straight to their endpoints and everything else to Starlette.

    Starlette's two exception layers and its routing cost a sixth of a request, and an inference
    endpoint answers its own exceptions.
    """

    def __init__(self, hot: Mapping[str, Endpoint], gemini: GeminiDoor, rest: Starlette) -> None:
        self._hot = hot
        self._gemini = gemini
        self._rest = rest

    def __call__(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> Coroutine[Any, Any, None]:
        """Serve one request (ASGI 3)."""
        endpoint = self._hot.get(scope["path"]) if scope["type"] == "http" else None
        if endpoint is not None and scope["method"] == "POST":
            return endpoint(scope, receive, send)
        if scope["type"] == "http" and scope["path"].startswith(GEMINI_PREFIXES):
            scope = with_key_header(scope)
            named = self._gemini.find(scope) if scope["method"] == "POST" else None
            if named is not None:
                return named(scope, receive, send)
        return self._rest(scope, receive, send)


class OnlyPost:
    """Refuses whatever comes to the path of a call that is a POST; those are taken before."""

    async def __call__(
        self, _scope: MutableMapping[str, Any], _receive: Receive, _send: Send
    ) -> None:
        """Refuse one request (ASGI 3)."""
        raise HTTPException(NO_SUCH_METHOD, headers={"Allow": "POST"})


ONLY_POST: Final = OnlyPost()


def build_app(deps: Deps) -> FrontDoor:
    """Assemble the routes of the data port."""
    models = Models(deps)
    hot: dict[str, Endpoint] = {
        path: inference_of(surface, deps) for path, surface in SURFACES.items()
    }
    messages = SURFACES[MESSAGES]
    hot[MESSAGES] = VersionDoor(hot[MESSAGES], messages, deps)
    counts = VersionDoor(TokenCounts(CountedMessages(), deps), messages, deps)
    app = Starlette(
        routes=[
            *(Route(path, endpoint, methods=["POST"]) for path, endpoint in hot.items()),
            Route("/v1/messages/count_tokens", counts, methods=["POST"]),
            *(
                Route(f"{path}/{{model:path}}:{call}", ONLY_POST)
                for path in LISTS
                for call in CALLS
            ),
            Route("/v1/models", models, methods=["GET"]),
            Route("/v1/models/{model:path}", models, methods=["GET"]),
            Route("/v1beta/models", models, methods=["GET"]),
            Route("/v1beta/models/{model:path}", models, methods=["GET"]),
        ],
        exception_handlers={404: _unrouted_answer(deps), 405: _unrouted_answer(deps)},
    )
    app.router.redirect_slashes = False
    return FrontDoor(hot, GeminiDoor(deps), app)


def _unrouted_answer(deps: Deps) -> Answer:
    async def answer(request: Request, exc: Exception) -> Response:
        status = exc.status_code if isinstance(exc, HTTPException) else 500
        allowed = (exc.headers or {}) if isinstance(exc, HTTPException) else {}
        is_call = request.method == "POST" and is_gemini_path(request.url.path)
        if status == NO_SUCH_METHOD and is_call:
            status, allowed = 404, {}  # the path of a model with a call that is not served
        error = unserved(request.url.path, request.method, status)
        request_id = deps.mint_id()
        surface = _surface_of(request.url.path, request.headers)
        return Response(
            surface.encode_error(error, request_id),
            status_code=error.status,
            headers={**allowed, "x-request-id": request_id, "x-gw-request-id": request_id},
            media_type="application/json",
        )

    return answer


def _surface_of(path: str, headers: Mapping[str, str]) -> Surface:
    """The surface whose error shape is known to who asks for a path.

    Vendors share paths, such as that of files; their clients say which they are in headers.
    """
    if is_gemini_path(path) or GOOGLE_HEADER.decode() in headers:
        return GEMINI
    is_claude = path.startswith(MESSAGES) or VERSION_HEADER.decode() in headers
    return SURFACES[MESSAGES] if is_claude else SURFACES[CHAT]
