"""`/api/keys`: the credentials of providers, never shown, with their flags, models and limits."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.server.admin.answers import told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.items import Item, Items
from cluster_gw.server.admin.read_only import ReadOnly

READ_ONLY: Final = ReadOnly(fixed=frozenset({"id", "provider", "account", "base_url"}))


def key_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/keys`."""
    keys = Keys(desk, "keys", show_key, READ_ONLY)
    return [
        Route("/api/keys", keys.show_all, methods=["GET"]),
        *keys.routes("/api/keys/{id}"),
        Route("/api/keys/{id}/cooldowns", keys.forget, methods=["DELETE"]),
    ]


class Keys(Items):
    """Shows and changes keys."""

    async def forget(self, request: Request) -> Response:
        """Forget cooldowns, their ladders and breakers of one key, on all workers at once."""
        name: str = self.find(request.path_params["id"])["id"]
        cleared = await self.desk.penalties.clear_key(name)
        return told({"id": name, "cleared": cleared}, self.desk.config_version)


def show_key(_desk: Desk, key: Item) -> dict[str, Any]:
    """Give a key; its account is its own unless it shares one."""
    return {**key, "account": key["account"] or key["id"]}
