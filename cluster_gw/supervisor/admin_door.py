"""Who may call `/api` on the operations port; there is nothing behind it in this version.

An address that tries more tokens in a minute than anybody would by mistake is refused for the rest
of it. Who has the token is let in whatever others at the same address do.
"""

import hmac
from collections.abc import Callable
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cluster_gw.errors import ErrorBody
from cluster_gw.server.auth import too_many_strangers
from cluster_gw.server.minute_counts import MinuteCounts
from cluster_gw.server.origin import find_origin, network_of
from cluster_gw.wire.retry_headers import retry_headers

TOKEN_VARIABLE: Final = "GW_ADMIN_TOKEN"  # noqa: S105 (its name, not its value)
SHORTEST_TOKEN: Final = 32
WRONG_TOKENS_RPM: Final = 600  # as in the first generation, where it bounded all of an address
ADDRESSES_APART: Final = 10_000
IPV6_PREFIX: Final = 64

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
        monotonic_s: clock of the minutes in which wrong tokens are counted.
    """

    def __init__(self, token: str | None, monotonic_s: Callable[[], float]) -> None:
        self._wrong = MinuteCounts(monotonic_s, apart=ADDRESSES_APART)
        self._token = (token or "").encode("utf-8", "surrogateescape")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        error = self._error(Request(scope))
        members = ("message", "type", "code", "param", "retryable")
        body = {"error": {name: getattr(error, name) for name in members}}
        response = Response(msgspec.json.encode(body), error.status, media_type="application/json")
        if error is UNKNOWN_TOKEN:
            response.headers["www-authenticate"] = "Bearer"
        response.headers.update(
            {name.decode(): value.decode() for name, value in retry_headers(error)}
        )
        await response(scope, receive, send)

    def _error(self, request: Request) -> ErrorBody:
        if len(self._token) < SHORTEST_TOKEN:
            return DISABLED
        scheme, _, sent = request.headers.get("authorization", "").partition(" ")
        # Starlette reads headers as Latin-1, which keeps every byte.
        is_known = hmac.compare_digest(sent.strip().encode("latin-1"), self._token)
        if is_known and scheme.lower() == "bearer":
            return NOTHING_THERE
        origin = find_origin(request.client.host if request.client else None, (), ())
        count, left_s = self._wrong.count(network_of(origin, IPV6_PREFIX))
        return UNKNOWN_TOKEN if count <= WRONG_TOKENS_RPM else too_many_tokens(left_s)


def too_many_tokens(left_s: float) -> ErrorBody:
    """The error of an address that tried too many tokens."""
    return msgspec.structs.replace(
        too_many_strangers(left_s),
        message="too many wrong tokens came from this address; wait as told",
    )
