"""Every route of the admin API; a noun joins with one line."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.server.admin.answers import ASKING, READING, answers_to_faults
from cluster_gw.server.admin.audit import audit_routes
from cluster_gw.server.admin.auditing import Endpoint, audited
from cluster_gw.server.admin.cache import cache_routes
from cluster_gw.server.admin.clients import client_routes
from cluster_gw.server.admin.combos import combo_routes
from cluster_gw.server.admin.config import config_routes
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.explain import explain_routes
from cluster_gw.server.admin.fallback import fallback_routes
from cluster_gw.server.admin.fleet import fleet_routes
from cluster_gw.server.admin.headroom import headroom_routes
from cluster_gw.server.admin.health import health_routes
from cluster_gw.server.admin.keys import key_routes
from cluster_gw.server.admin.limits import limit_routes
from cluster_gw.server.admin.models import model_routes
from cluster_gw.server.admin.openapi import OpenApi
from cluster_gw.server.admin.penalties import penalty_routes
from cluster_gw.server.admin.pins import pin_routes
from cluster_gw.server.admin.profiles import profile_routes
from cluster_gw.server.admin.requests import request_routes
from cluster_gw.server.admin.routing import routing_routes
from cluster_gw.server.admin.snapshot import snapshot_routes
from cluster_gw.server.admin.thresholds import threshold_routes
from cluster_gw.server.admin.usage import usage_routes

NOUNS: Final[tuple[Callable[[Desk], list[Route]], ...]] = (
    combo_routes,
    profile_routes,
    model_routes,
    key_routes,
    health_routes,
    limit_routes,
    fallback_routes,
    routing_routes,
    penalty_routes,
    headroom_routes,
    threshold_routes,
    config_routes,
    explain_routes,
    request_routes,
    cache_routes,
    fleet_routes,
    snapshot_routes,
    pin_routes,
    client_routes,
    audit_routes,
    usage_routes,
)


def build_admin(desk: Desk) -> Starlette:
    """Assemble the admin API of this worker.

    Its callers are known already: only the supervisor of the group reaches the control socket.
    """
    own = [route for noun in NOUNS for route in noun(desk)]
    routes = joined(desk, [*own, OpenApi(own).route()])
    app = Starlette(routes=routes, exception_handlers=answers_to_faults(desk))
    app.router.redirect_slashes = False
    return app


def joined(desk: Desk, routes: Iterable[Route]) -> list[Route]:
    """Give one route for each path, so that its 405 names all methods that it has.

    Those that change something are audited; a new one joins by itself.
    """
    by_path: dict[str, dict[str, Endpoint]] = {}
    for route in routes:
        methods = by_path.setdefault(route.path, {})
        for method in route.methods or ():
            changes = method not in READING and (method, route.path) not in ASKING
            methods[method] = audited(desk, route.endpoint) if changes else route.endpoint
    return [
        Route(path, _by_method(methods), methods=sorted(methods))
        for path, methods in by_path.items()
    ]


def _by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    async def answer(request: Request) -> Response:
        return await endpoints[request.method](request)

    return answer
