"""`/api/models`: what there is to route to, and its flags, ranks and limits."""

from typing import Any, Final

from starlette.routing import Route

from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.items import Item, Items
from cluster_gw.server.admin.read_only import ReadOnly

READ_ONLY: Final = ReadOnly(
    fixed=frozenset({"id", "provider", "model", "name", "price", "token_weight"}),
    moving=frozenset({"keys", "routes"}),
    measured=frozenset({"speed_rank_measured", "warnings"}),
)


def model_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/models`."""
    models = Items(desk, "models", show_model, READ_ONLY)
    return [
        Route("/api/models", models.show_all, methods=["GET"]),
        *models.routes("/api/models/{id:path}"),
    ]


def show_model(desk: Desk, model: Item) -> dict[str, Any]:
    """Give a model, its routes (several behind relays), and the keys that may serve it.

    Also the speed rank of its fastest route by what was measured and written down, 1 (fastest) to
    10; null without any.
    """
    routes = [
        route
        for route in desk.deps.current.serving.runtime.catalog.routes.values()
        if (route.provider, route.model) == (model["provider"], model["model"])
    ]
    written = desk.deps.current.view.signals.speed_ranks
    ranks = [written[route.id] for route in routes if route.id in written]
    return {
        **model,
        "speed_rank_measured": min(ranks, default=None),
        "routes": [route.id for route in routes],
        "keys": [key.id for route in routes for key in route.keys],
    }
