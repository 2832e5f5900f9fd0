"""`/api/audit`: what was changed through the admin API, by whom and from where."""

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid, listed
from cluster_gw.server.admin.desk import Desk

LISTED, MOST_LISTED = 100, 2000
ONLY: Final = frozenset({"limit"})


def audit_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/audit`."""
    return [Route("/api/audit", AuditDesk(desk).show_all, methods=["GET"])]


class AuditDesk:
    """Reads Redis, where all groups and the command line write."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show_all(self, request: Request) -> Response:
        """List the newest changes, the latest first; at most `?limit=`."""
        noted = await self._desk.audit.latest(read_limit(request))
        items = [{"at_ms": one.at_ms, **msgspec.to_builtins(one.entry)} for one in noted]
        return listed(items, self._desk.config_version)


def read_limit(request: Request) -> int:
    """Read how many are asked for.

    Raises:
        ClientFault: it is no number within bounds, or something else is asked.
    """
    for name in request.query_params:
        if name not in ONLY:
            raise ClientFault(invalid("write ?limit=N, or nothing", name))
    text = request.query_params.get("limit", str(LISTED))
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_LISTED))
    if not is_number or not 1 <= int(text) <= MOST_LISTED:
        raise ClientFault(invalid(f"limit has to be a number from 1 to {MOST_LISTED}", "limit"))
    return int(text)
