"""`/api/requests`: the newest requests that a record is kept of.

`/api/requests/{id}`: how one was ranked, and what came of it.
"""

import re
from collections.abc import Awaitable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import (
    ClientFault,
    ClusterFault,
    ErrorBody,
    RecordUnreadableError,
    StoreLostError,
)
from cluster_gw.server.admin.answers import JSON, invalid, listed, redis_silent
from cluster_gw.server.admin.desk import Desk
from cluster_gw.store.request_records import NOTABLE, PLAIN

REQUEST_ID: Final = re.compile(r"[0-9a-f]{32}")
LISTED, MOST_LISTED = 50, 200
KINDS: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {"all": (NOTABLE, PLAIN), NOTABLE: (NOTABLE,), PLAIN: (PLAIN,)}
)
T = TypeVar("T")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What a list tells of a record; see `keeping.RequestRecord`."""

    id: str
    at_ms: int
    client: str
    combo: str
    strategy: str
    status: int
    code: str | None
    stream: bool
    route: str | None
    key: str | None
    attempts: tuple[msgspec.Raw, ...]
    tokens: int
    duration_ms: float
    first_byte_ms: float | None
    worker: str
    is_degraded: bool

    def shown(self) -> dict[str, Any]:
        """As a list shows it."""
        return {**msgspec.structs.asdict(self), "attempts": len(self.attempts)}


def request_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/requests`."""
    requests = Requests(desk)
    return [
        Route("/api/requests", requests.show_all, methods=["GET"]),
        Route("/api/requests/{id}", requests.show, methods=["GET"]),
    ]


class Requests:
    """Shows records of requests, whichever worker served them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show_all(self, request: Request) -> Response:
        """List the newest records, of one kind or of all."""
        most, kinds = read_most(request), read_kinds(request)
        lines = await self._read(self._desk.records.latest(most, kinds, Line))
        return listed([line.shown() for line in lines], self._desk.config_version)

    async def show(self, request: Request) -> Response:
        """Show the record of one request."""
        name: str = request.path_params["id"]
        found = None
        if REQUEST_ID.fullmatch(name):
            found = await self._read(self._desk.records.find(name))
        if found is None:
            raise ClientFault(no_record(name))
        return Response(found, media_type=JSON)

    async def _read(self, question: Awaitable[T]) -> T:
        try:
            return await question
        except RecordUnreadableError:
            raise
        except StoreLostError:
            setting = self._desk.records.setting
            raise ClusterFault(redis_silent(f"the Redis of {setting}")) from None


def read_most(request: Request) -> int:
    """Read how many are asked for.

    Raises:
        ClientFault: it is no number within bounds.
    """
    text = request.query_params.get("limit", str(LISTED))
    most = int(text) if text.isascii() and text.isdigit() and len(text) < len("1000") else 0
    if not 1 <= most <= MOST_LISTED:
        raise ClientFault(invalid(f"limit has to be a number from 1 to {MOST_LISTED}", "limit"))
    return most


def read_kinds(request: Request) -> Sequence[str]:
    """Read which kinds are asked for.

    Raises:
        ClientFault: there is no such kind.
    """
    name = request.query_params.get("kind", "all")
    if name not in KINDS:
        raise ClientFault(invalid(f"kind has to be one of {', '.join(KINDS)}", "kind"))
    return KINDS[name]


def no_record(name: str) -> ErrorBody:
    """The error of a request of which nothing is kept."""
    return ErrorBody(
        status=404,
        type="invalid_request_error",
        code="not_found",
        message=f"no record of a request '{name[:64]}' is kept: it is the value of "
        "X-Gw-Request-Id; telemetry.request_records says of which requests, and for how long",
    )
