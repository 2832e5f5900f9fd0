"""`/api/requests/{id}`: how a request that has ended was ranked, and what came of it."""

import re
from typing import Final

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
from cluster_gw.server.admin.answers import JSON, redis_silent
from cluster_gw.server.admin.desk import Desk

REQUEST_ID: Final = re.compile(r"[0-9a-f]{32}")


def request_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/requests`."""
    return [Route("/api/requests/{id}", Requests(desk).show, methods=["GET"])]


class Requests:
    """Shows records of requests, whichever worker served them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, request: Request) -> Response:
        """Show the record of one request."""
        name: str = request.path_params["id"]
        found = None
        if REQUEST_ID.fullmatch(name):
            found = await self._find(name)
        if found is None:
            raise ClientFault(no_record(name))
        return Response(found, media_type=JSON)

    async def _find(self, name: str) -> bytes | None:
        records = self._desk.records
        try:
            return await records.find(name)
        except RecordUnreadableError:
            raise
        except StoreLostError:
            raise ClusterFault(redis_silent(f"the Redis of {records.setting}")) from None


def no_record(name: str) -> ErrorBody:
    """The error of a request of which nothing is kept."""
    return ErrorBody(
        status=404,
        type="invalid_request_error",
        code="not_found",
        message=f"no record of a request '{name[:64]}' is kept: it is the value of "
        "X-Gw-Request-Id; telemetry.request_records says of which requests, and for how long",
    )
