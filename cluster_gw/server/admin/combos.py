"""`/api/combos`: the named chains of routes and how each ranks its members."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.core.routing.catalog import Combo
from cluster_gw.server.admin.answers import listed, nothing_called, told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.units import ComboId


def combo_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/combos`."""
    combos = Combos(desk)
    return [
        Route("/api/combos", combos.show_all, methods=["GET"]),
        Route("/api/combos/{id:path}", combos.show, methods=["GET"]),
    ]


class Combos:
    """Shows combos."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show_all(self, _request: Request) -> Response:
        """List all combos, in declared order."""
        catalog = self._desk.deps.current.serving.runtime.catalog
        combos = [
            _shown(combo, is_default=combo.id == catalog.default_combo)
            for combo in catalog.combos.values()
        ]
        return listed(combos, self._desk.config_version)

    async def show(self, request: Request) -> Response:
        """Show one combo."""
        catalog = self._desk.deps.current.serving.runtime.catalog
        name = ComboId(request.path_params["id"])
        combo = catalog.combos.get(name)
        if combo is None:
            raise nothing_called("combo", name)
        return told(
            _shown(combo, is_default=name == catalog.default_combo), self._desk.config_version
        )


def _shown(combo: Combo, *, is_default: bool) -> dict[str, Any]:
    return {
        "id": combo.id,
        "family": combo.family,
        "strategy": combo.strategy,
        "members": [{"route": member.route, "enabled": member.enabled} for member in combo.members],
        "default": is_default,
    }
