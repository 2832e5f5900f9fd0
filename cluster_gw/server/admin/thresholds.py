"""`/api/settings/thresholds`: when something is cut off, rests, counts less or is given up."""

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

SECTIONS: Final = ("breaker", "cooldown", "penalty", "bench", "degraded", "peek", "attempts")
"""Of `routing`: each is an argument of what reads it, so a new value holds for the next request."""
VERSION: Final = "config_version"
READ_ONLY: Final = ReadOnly(fixed=frozenset({VERSION}))


def threshold_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/settings/thresholds`."""
    thresholds = Thresholds(desk)
    return [
        Route("/api/settings/thresholds", thresholds.show, methods=["GET"]),
        Route("/api/settings/thresholds", thresholds.change, methods=["PUT"]),
    ]


class Thresholds:
    """Shows and changes them, section by section."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, _request: Request) -> Response:
        """Show all."""
        return self._told()

    async def change(self, request: Request) -> Response:
        """Change some; null goes back to what the file says, of a field or of a whole section.

        Whoever sends the whole answer back, with its version, changes what differs.
        """
        sent = snake_case(await read_object(request))
        for name, value in sent.items():
            if name not in {*SECTIONS, VERSION}:
                known = ", ".join(SECTIONS)
                raise ClientFault(invalid(f"there are {known}; got {name[:80]}", name[:80]))
            if name != VERSION and value is not None and not isinstance(value, dict):
                raise ClientFault(invalid(f"{name} has to be an object", name))

        def changes() -> list[Change]:
            held = {**self._held(), VERSION: self._desk.config_version}
            fields = changed_only(sent, held, READ_ONLY)
            fields.pop(VERSION, None)
            return [Change(noun="settings", id="routing", fields=fields)]

        await self._desk.editor.write(changes, seen_version(request))
        return self._told()

    def _told(self) -> Response:
        return told(self._held(), self._desk.config_version)

    def _held(self) -> dict[str, Any]:
        routing = self._desk.editor.shown()["routing"]
        return {section: routing[section] for section in SECTIONS}
