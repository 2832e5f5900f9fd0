"""`/api/fallback/penalty-inspector`: what is held against routes now, and forgetting all of it."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.server.admin.answers import told
from cluster_gw.server.admin.desk import ERRORS_LOOKBACK_MIN, Desk
from cluster_gw.server.admin.fallback import named_combo


def penalty_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/fallback/penalty-inspector`."""
    inspector = Inspector(desk)
    return [
        Route("/api/fallback/penalty-inspector", inspector.show, methods=["GET"]),
        Route("/api/fallback/penalty-inspector", inspector.clear, methods=["DELETE"]),
    ]


class Inspector:
    """Reads Redis, not what this worker remembers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, request: Request) -> Response:
        """Show every route that has a penalty, a bench, a key that rests, or errors of late."""
        combo = named_combo(self._desk, request)
        catalog = self._desk.deps.current.serving.runtime.catalog
        places = {member.route: place for place, member in enumerate(combo.members, 1)}
        flags = {member.route: member.enabled for member in combo.members}
        now_ms = self._desk.deps.clock.wall_ms()
        rows = []
        for held in await self._desk.penalties.list_rows(now_ms):
            route = catalog.routes[held["route"]]
            rows.append(
                {
                    "route": route.id,
                    "provider": route.provider,
                    "model": route.model,
                    "name": route.name,
                    "enabled": route.enabled,
                    "fallback_enabled": flags.get(route.id, False),
                    "priority": places.get(route.id),
                    **held,
                }
            )
        document = {
            "combo": combo.id,
            "generated_at_ms": now_ms,
            "lookback_minutes": ERRORS_LOOKBACK_MIN,
            "rows": rows,
            "providers": await self._desk.penalties.list_providers(),
        }
        return told(document, self._desk.config_version)

    async def clear(self, _request: Request) -> Response:
        """Forget penalties, benches, cooldowns, their ladders and breakers, on all workers."""
        cleared = await self._desk.penalties.clear()
        return told({"cleared": cleared}, self._desk.config_version)
