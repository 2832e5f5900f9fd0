"""`/api/settings/headroom`: how scarce quota lowers a score."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid, read_object, told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.editor import Change
from cluster_gw.server.admin.read_only import ReadOnly, changed_only
from cluster_gw.server.admin.writing import seen_version, snake_case

FIELDS: Final = ("ramp_start", "floor")
VERSION: Final = "config_version"
READ_ONLY: Final = ReadOnly(fixed=frozenset({VERSION}))
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
        """Change one or both; null goes back to what the file says, or the default.

        Whoever sends the whole answer back, with its version, changes what differs.
        """
        held = {**self._held(), VERSION: self._desk.config_version}
        sent = changed_only(snake_case(await read_object(request)), held, READ_ONLY)
        fields = {}
        for name, value in sent.items():
            if name == VERSION:
                continue
            own = name.removeprefix(OLD_PREFIX)
            if own not in FIELDS or own in fields:
                raise ClientFault(invalid(f"send ramp_start and floor once each; got {own}", own))
            fields[own] = value
        change = Change(noun="settings", id="routing", fields={"headroom": fields})
        await self._desk.editor.write(lambda: [change], seen_version(request))
        return self._told()

    def _told(self) -> Response:
        return told(self._held(), self._desk.config_version)

    def _held(self) -> dict[str, Any]:
        held = self._desk.editor.shown()["routing"]["headroom"]
        return {name: held[name] for name in FIELDS}
