"""Who may call `/api` on the operations port; there is nothing behind it in this version."""

import hmac
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cluster_gw.errors import ErrorBody

TOKEN_VARIABLE: Final = "GW_ADMIN_TOKEN"  # noqa: S105 (its name, not its value)
SHORTEST_TOKEN: Final = 32

DISABLED: Final = ErrorBody(
    status=403,
    type="permission_error",
    code="admin_disabled",
    message=f"the admin API is off; set {TOKEN_VARIABLE} to at least {SHORTEST_TOKEN} characters",
)
UNKNOWN_TOKEN: Final = ErrorBody(
    status=401,
    type="authentication_error",
    code="invalid_admin_token",
    message=f"send the value of {TOKEN_VARIABLE} as a Bearer token",
)
NOTHING_THERE: Final = ErrorBody(
    status=404,
    type="invalid_request_error",
    code="not_found",
    message="this version has no admin API",
)


class AdminDoor:
    """Answers everything under `/api`, whatever the method.

    Args:
        token: what an administrator sends as a Bearer token; shorter than 32 characters is none.
    """

    def __init__(self, token: str | None) -> None:
        self._token = (token or "").encode("utf-8", "surrogateescape")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        error = self._error(Request(scope))
        members = ("message", "type", "code", "param", "retryable")
        body = {"error": {name: getattr(error, name) for name in members}}
        response = Response(msgspec.json.encode(body), error.status, media_type="application/json")
        if error is UNKNOWN_TOKEN:
            response.headers["www-authenticate"] = "Bearer"
        await response(scope, receive, send)

    def _error(self, request: Request) -> ErrorBody:
        if len(self._token) < SHORTEST_TOKEN:
            return DISABLED
        scheme, _, sent = request.headers.get("authorization", "").partition(" ")
        # Starlette reads headers as Latin-1, which keeps every byte.
        is_known = hmac.compare_digest(sent.strip().encode("latin-1"), self._token)
        return NOTHING_THERE if is_known and scheme.lower() == "bearer" else UNKNOWN_TOKEN
