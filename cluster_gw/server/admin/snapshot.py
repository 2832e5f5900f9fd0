"""`/api/snapshot`: the version of usage and statistics that this worker ranks by."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid, told
from cluster_gw.server.admin.desk import Desk

SECTIONS: Final = (
    *("windows", "health", "statistics", "months", "models", "providers", "speed_ranks"),
)


def snapshot_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/snapshot`."""
    return [Route("/api/snapshot", SnapshotDesk(desk).show, methods=["GET"])]


class SnapshotDesk:
    """Shows what this worker has; `/api/workers` tells which version the others have."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, request: Request) -> Response:
        """Show version, age and size of the snapshot; with `?section=` its records of one kind."""
        section = read_section(request)
        deps = self._desk.deps
        view = deps.current.view
        snapshot = view.snapshot
        document: dict[str, Any] = {
            "version": snapshot.version,
            "age_ms": view.age_ms(deps.clock.monotonic_s()),
            "at_ms": snapshot.at_ms or None,
            "builder": snapshot.builder or None,
            "workers": snapshot.workers,
            "records": {name: len(getattr(snapshot, name)) for name in SECTIONS},
        }
        if section is not None:
            document["section"] = section
            document["items"] = msgspec.to_builtins(getattr(snapshot, section))
        return told(document, self._desk.config_version)


def read_section(request: Request) -> str | None:
    """Read which records are asked for; None for none.

    Raises:
        ClientFault: there are none of that name, or something else is asked.
    """
    for name, value in request.query_params.items():
        if name != "section" or value not in SECTIONS:
            raise ClientFault(invalid(f"section has to be one of {', '.join(SECTIONS)}", name))
    return request.query_params.get("section")
