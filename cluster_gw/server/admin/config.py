"""`/api/config`: what was changed at run time, and back to the files."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.server.admin.answers import told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.writing import seen_version


def config_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/config`."""
    config = Config(desk)
    return [
        Route("/api/config", config.show, methods=["GET"]),
        Route("/api/config", config.clear, methods=["DELETE"]),
    ]


class Config:
    """Shows and removes all changes."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, _request: Request) -> Response:
        """Show all changes, and which of them do not fit the file of this group."""
        return self._told()

    async def clear(self, request: Request) -> Response:
        """Go back to the files, everywhere."""
        await self._desk.editor.clear(seen_version(request))
        return self._told()

    def _told(self) -> Response:
        editor = self._desk.editor
        dropped = [{"patch": one.patch, "faults": one.faults} for one in editor.dropped()]
        return told({"changes": editor.patches(), "dropped": dropped}, editor.version)
