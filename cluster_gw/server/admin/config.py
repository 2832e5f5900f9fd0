"""`/api/config`: what was changed at run time, and back to the files."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.server.admin.answers import told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.writing import seen_version
from cluster_gw.settings.shown import KEY_HASH, fingerprint

SEALED: Final = "sealed"  # a secret, encrypted


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
        """Go back to the files, everywhere; clients that were made, and keys of clients, stay."""
        await self._desk.editor.clear(seen_version(request))
        return self._told()

    def _told(self) -> Response:
        editor = self._desk.editor
        dropped = [{"patch": one.patch, "faults": one.faults} for one in editor.dropped()]
        document = {"changes": without_hashes(editor.patches()), "dropped": dropped}
        return told(document, editor.version)


def without_hashes(value: Any) -> Any:
    """Give changes as they are shown: of the hash of a key only its fingerprint, no secret."""
    if isinstance(value, Mapping):
        return {
            name: f"{fingerprint(one)}…" if name == KEY_HASH else without_hashes(one)
            for name, one in value.items()
            if name != SEALED
        }
    return [without_hashes(one) for one in value] if isinstance(value, list) else value
