"""`/api/keys`: the credentials of providers, never shown, with their flags, models and limits."""

from typing import Any, Final

from starlette.routing import Route

from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.items import Item, Items
from cluster_gw.server.admin.read_only import ReadOnly

READ_ONLY: Final = ReadOnly(fixed=frozenset({"id", "provider", "account", "base_url"}))


def key_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/keys`."""
    keys = Items(desk, "keys", show_key, READ_ONLY)
    return [
        Route("/api/keys", keys.show_all, methods=["GET"]),
        *keys.routes("/api/keys/{id}"),
    ]


def show_key(_desk: Desk, key: Item) -> dict[str, Any]:
    """Give a key; its account is its own unless it shares one."""
    return {**key, "account": key["account"] or key["id"]}
