"""`/api/limits`: what the windows of each key count now, beside what they allow."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.server.admin.answers import listed
from cluster_gw.server.admin.desk import Desk


def limit_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/limits`."""
    return [Route("/api/limits", KeyLimits(desk).show_all, methods=["GET"])]


class KeyLimits:
    """Reads Redis, not what this worker remembers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show_all(self, _request: Request) -> Response:
        """List the keys with their windows."""
        return listed(await self._desk.windows.list_rows(), self._desk.config_version)
