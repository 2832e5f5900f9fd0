"""`/api/settings/headroom`: how scarce quota lowers a score."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid, told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.editor import Change
from cluster_gw.server.admin.writing import read_fields, seen_version

FIELDS: Final = ("ramp_start", "floor")
OLD_PREFIX: Final = "routing_headroom_"


def headroom_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/settings/headroom`."""
    headroom = Headroom(desk)
    return [
        Route("/api/settings/headroom", headroom.show, methods=["GET"]),
        Route("/api/settings/headroom", headroom.change, methods=["PUT"]),
    ]


class Headroom:
    """Shows and changes two numbers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, _request: Request) -> Response:
        """Show them."""
        return self._told()

    async def change(self, request: Request) -> Response:
        """Change one or both; null goes back to what the file says, or the default."""
        fields = {}
        for name, value in (await read_fields(request)).items():
            own = name.removeprefix(OLD_PREFIX)
            if own not in FIELDS or own in fields:
                raise ClientFault(invalid(f"send ramp_start and floor once each; got {own}", own))
            fields[own] = value
        change = Change(noun="settings", id="routing", fields={"headroom": fields})
        await self._desk.editor.write([change], seen_version(request))
        return self._told()

    def _told(self) -> Response:
        held = self._desk.editor.shown()["routing"]["headroom"]
        return told({name: held[name] for name in FIELDS}, self._desk.config_version)
