"""Passes calls of the admin API on to one live worker of the group, over its private socket.

The workers and Redis hold all state, so any of them can answer. The same one is asked as long as
it lives: whoever has written reads what was written.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

import httpx
from starlette.requests import Request
from starlette.responses import Response

from cluster_gw.errors import ErrorBody
from cluster_gw.server.introduction import ACTOR_HEADER, GROUP_HEADER, PEER_HEADER
from cluster_gw.supervisor.control import WorkerControl
from cluster_gw.units import BYTES_PER_MB, MS_PER_S

MAX_BODY_BYTES: Final = 10 * BYTES_PER_MB
PASSED_ON: Final = ("content-type", "if-match", "x-request-id")
PASSED_BACK: Final = (
    *("content-type", "etag", "allow", "retry-after", "retry-after-ms"),
    *("x-request-id", "x-gw-request-id", "x-should-retry"),
)
BLANKS: Final = " \t"
SENDABLE: Final = re.compile(r"[\t -~]*")
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
HARMLESS: Final = frozenset({"GET", "HEAD"})

NO_WORKER: Final = ErrorBody(
    status=503,
    type="service_unavailable",
    code="no_worker",
    message="no worker of this group answers; nothing was done",
    retryable=True,
    retry_after_ms=MS_PER_S,
)
SILENT_WORKER: Final = ErrorBody(
    status=504,
    type="timeout_error",
    code="worker_silent",
    message="the worker did not answer in time; look whether it was done before you repeat",
    retryable=True,
)
NOT_HTTP: Final = ErrorBody(
    status=400,
    type="invalid_request_error",
    code="invalid_request",
    message="the path, the query or a header cannot be passed on as HTTP; nothing was done",
)
NOBODYS_PATH: Final = ErrorBody(
    status=400,
    type="invalid_request_error",
    code="invalid_request",
    message="the path holds a control character, which no name does; nothing was done",
)
TOO_LARGE: Final = ErrorBody(
    status=413,
    type="invalid_request_error",
    code="request_too_large",
    message="the body of a call of the admin API may have 10 MB",
)


def unreadable_header(name: str) -> ErrorBody:
    """The error of a header with other characters than HTTP knows."""
    return ErrorBody(
        status=400,
        type="invalid_request_error",
        code="invalid_header",
        message=f"{name} has to be printable ASCII; nothing was done",
        param=name,
    )


class AdminRelay:
    """Finds a worker that answers.

    Args:
        workers: those that answer now, always in the same order.
        names: their ids, as Redis knows them.
    """

    def __init__(
        self,
        workers: Callable[[], Sequence[WorkerControl]],
        names: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._workers, self._names = workers, names

    async def answer(self, request: Request, actor: str) -> Response | ErrorBody:
        """Give the answer of a worker, or the error of none.

        Args:
            request: what is asked.
            actor: whose token was sent.
        """
        if CONTROL.search(request.scope["path"]):
            return NOBODYS_PATH
        body = await _bounded_body(request)
        if body is None:
            return TOO_LARGE
        path = request.scope.get("raw_path") or request.url.path.encode()
        query = request.scope.get("query_string", b"")
        target = (path + b"?" + query if query else path).decode("latin-1")
        headers = {
            name: request.headers[name].strip(BLANKS)
            for name in PASSED_ON
            if name in request.headers
        }
        for name, value in headers.items():
            if not SENDABLE.fullmatch(value):
                return unreadable_header(name)
        headers |= {
            GROUP_HEADER: " ".join(self._names()),
            ACTOR_HEADER: actor,
            PEER_HEADER: request.client.host if request.client else "",
        }
        last = NO_WORKER
        for worker in self._workers():
            try:
                found = await worker.pass_on(request.method, target, headers, body)
            except httpx.ConnectError:
                continue
            except (httpx.LocalProtocolError, httpx.InvalidURL, UnicodeError):
                return NOT_HTTP
            except (httpx.HTTPError, OSError, TimeoutError):
                last = SILENT_WORKER
                if request.method in HARMLESS:
                    continue
                break
            kept = {name: found.headers[name] for name in PASSED_BACK if name in found.headers}
            return Response(found.content, found.status_code, kept)
        return last


async def _bounded_body(request: Request) -> bytes | None:
    body = bytearray()
    is_too_large = False
    async for part in request.stream():
        is_too_large = is_too_large or len(body) + len(part) > MAX_BODY_BYTES
        if not is_too_large:
            body += part
    return None if is_too_large else bytes(body)
