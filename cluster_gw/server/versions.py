"""The version that clients of Anthropic's API name in a header: it is asked for as the vendor does.

Who has no valid key is not told of it; what stands behind this door refuses them.
"""

from collections.abc import Callable, Coroutine, MutableMapping
from typing import Any, Final

from cluster_gw.errors import ErrorBody
from cluster_gw.pipeline.reply import Reply, Send
from cluster_gw.server.answers import send_error
from cluster_gw.server.body import Receive, drain_unread
from cluster_gw.server.hints import VERSION_HEADER, echo_label, is_version
from cluster_gw.server.inference import Deps
from cluster_gw.surfaces.base import Surface
from cluster_gw.telemetry import catalog

NAME: Final = VERSION_HEADER.decode()
USUAL: Final = "2023-06-01"
SHOWN_BYTES: Final = 32

Endpoint = Callable[[MutableMapping[str, Any], Receive, Send], Coroutine[Any, Any, None]]


class VersionDoor:
    """Lets requests with a version through to an endpoint.

    Args:
        endpoint: what serves them.
        surface: of errors.
        deps: what it works with.
    """

    def __init__(self, endpoint: Endpoint, surface: Surface, deps: Deps) -> None:
        self._endpoint = endpoint
        self._surface = surface
        self._deps = deps

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        headers = dict(scope["headers"])
        problem = version_problem(headers.get(VERSION_HEADER))
        deps = self._deps
        if problem is None or isinstance(deps.current.serving.clients.identify(headers), ErrorBody):
            await self._endpoint(scope, receive, send)
            return
        await drain_unread(receive, headers)
        deps.registry.add(catalog.CLIENT_FAULTS, problem.code)
        request_id = deps.mint_id()
        label = echo_label(headers, request_id)
        await send_error(Reply(send), self._surface, problem, label=label, request_id=request_id)


def version_problem(given: bytes | None) -> ErrorBody | None:
    """The error of a version that is missing or unknown, in the vendor's words."""
    if given is not None and is_version(given.strip()):
        return None
    shown = "" if given is None else given[:SHOWN_BYTES].decode("latin-1")
    told = "header is required" if given is None else f'"{shown}" is not a valid version'
    return ErrorBody(
        status=400,
        type="invalid_request_error",
        code="invalid_header",
        param=NAME,
        message=f"{NAME}: {told}. Send {USUAL}.",
    )
