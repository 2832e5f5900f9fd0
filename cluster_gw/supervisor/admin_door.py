"""Who may call `/api` on the operations port; a worker answers who may.

An address that tries more tokens in a minute than anybody would by mistake is refused for the rest
of it. Who has the token is let in whatever others at the same address do.
"""

import hmac
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cluster_gw.errors import ErrorBody
from cluster_gw.server.auth import too_many_strangers
from cluster_gw.server.minute_counts import MinuteCounts
from cluster_gw.server.origin import find_origin, network_of
from cluster_gw.supervisor.admin_relay import AdminRelay
from cluster_gw.wire.retry_headers import retry_headers

TOKEN_VARIABLE: Final = "GW_ADMIN_TOKEN"  # noqa: S105 (its name, not its value)
NAMED_VARIABLE: Final = f"{TOKEN_VARIABLE}_"
OWNER: Final = "admin"
"""What the audit log calls who has `GW_ADMIN_TOKEN`."""
ACTOR: Final = re.compile(r"[A-Z0-9_]{1,40}")
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


NOBODY_ELSE: Final[Mapping[str, str]] = MappingProxyType({})


def named_tokens(environ: Mapping[str, str]) -> dict[str, str]:
    """Read whose further tokens there are: `GW_ADMIN_TOKEN_ALICE` is that of `alice`."""
    found = {
        name.removeprefix(NAMED_VARIABLE): value
        for name, value in environ.items()
        if name.startswith(NAMED_VARIABLE)
    }
    return {actor.lower(): token for actor, token in found.items() if ACTOR.fullmatch(actor)}


class AdminDoor:
    """Answers everything under `/api`, whatever the method.

    Args:
        token: what an administrator sends as a Bearer token; shorter than 32 characters is none.
        monotonic_s: clock of the minutes in which wrong tokens are counted.
        relay: answers who has the token.
        named: further tokens, by whom they belong to.
    """

    def __init__(
        self,
        token: str | None,
        monotonic_s: Callable[[], float],
        relay: AdminRelay,
        named: Mapping[str, str] = NOBODY_ELSE,
    ) -> None:
        self._relay = relay
        self._wrong = MinuteCounts(monotonic_s, apart=ADDRESSES_APART)
        self._tokens = [
            (actor, value.encode("utf-8", "surrogateescape"))
            for actor, value in ((OWNER, token or ""), *named.items())
            if len(value) >= SHORTEST_TOKEN
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        who = self._who(request)
        answer = await self._relay.answer(request, who) if isinstance(who, str) else who
        response = _rendered(answer) if isinstance(answer, ErrorBody) else answer
        await response(scope, receive, send)

    def _who(self, request: Request) -> str | ErrorBody:
        """Whose token was sent, or why nobody is let in."""
        if not self._tokens:
            return DISABLED
        scheme, _, sent = request.headers.get("authorization", "").partition(" ")
        # Starlette reads headers as Latin-1, which keeps every byte.
        value = sent.strip().encode("latin-1")
        known = [actor for actor, token in self._tokens if hmac.compare_digest(value, token)]
        if known and scheme.lower() == "bearer":
            return known[0]
        origin = find_origin(request.client.host if request.client else None, (), ())
        count, left_s = self._wrong.count(network_of(origin, IPV6_PREFIX))
        return UNKNOWN_TOKEN if count <= WRONG_TOKENS_RPM else too_many_tokens(left_s)


def _rendered(error: ErrorBody) -> Response:
    members = ("message", "type", "code", "param", "retryable", "retry_after_ms")
    told = {name: getattr(error, name) for name in members}
    body = {
        "error": {name: value for name, value in told.items() if name != "retry_after_ms" or value}
    }
    response = Response(msgspec.json.encode(body), error.status, media_type="application/json")
    if error is UNKNOWN_TOKEN:
        response.headers["www-authenticate"] = "Bearer"
    response.headers.update({name.decode(): value.decode() for name, value in retry_headers(error)})
    return response


def too_many_tokens(left_s: float) -> ErrorBody:
    """The error of an address that tried too many tokens."""
    return msgspec.structs.replace(
        too_many_strangers(left_s),
        message="too many wrong tokens came from this address; wait as told",
    )
