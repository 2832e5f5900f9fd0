"""The operations port of the group: liveness, readiness, metrics, admin API, dashboard."""

import contextlib
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from cluster_gw.server.ui.shell import Dashboard
from cluster_gw.supervisor.admin_door import NOBODY_ELSE, AdminDoor
from cluster_gw.supervisor.admin_relay import AdminRelay
from cluster_gw.supervisor.control import Readiness
from cluster_gw.supervisor.merging import CONTENT_TYPE, render
from cluster_gw.telemetry.registry import Family

JSON: Final = "application/json"
LIVEZ: Final = ("/livez", "/health", "/health/liveliness")
ADMIN: Final = ("/api", "/api/{path:path}")
DASHBOARD: Final = ("/ui", "/ui/{path:path}")
NOT_SERVING: Final = frozenset({"starting", "draining"})
ALIVE: Final = b'{"status":"ok"}'

ReadReadiness = Callable[[], Awaitable[Readiness]]
ReadMetrics = Callable[[], Awaitable[list[Family]]]


def operations_app(
    readiness: ReadReadiness,
    metrics: ReadMetrics | None,
    admin_token: str | None,
    relay: AdminRelay,
    ui_hosts: Sequence[str] = (),
    admin_tokens: Mapping[str, str] = NOBODY_ELSE,
) -> Starlette:
    """Build the application.

    Args:
        readiness: what the group is now.
        metrics: the metrics of the group; None serves none.
        admin_token: opens the admin API; None keeps it shut.
        relay: has a worker answer it.
        ui_hosts: names under which the dashboard is shown; see `server.ui_hosts`.
        admin_tokens: further ones that open it, by whom they belong to.
    """
    admin = AdminDoor(admin_token, time.monotonic, relay, admin_tokens)
    dashboard = Dashboard(ui_hosts)

    async def livez(_request: Request) -> Response:
        return Response(ALIVE, media_type=JSON)

    async def readyz(_request: Request) -> Response:
        state = await readiness()
        status = 503 if state.status in NOT_SERVING else 200
        headers = {"retry-after": "1"} if status != 200 else None  # noqa: PLR2004
        return Response(msgspec.json.encode(state), status, headers, media_type=JSON)

    routes = [
        *(Route(path, livez, methods=["GET"]) for path in LIVEZ),
        Route("/readyz", readyz, methods=["GET"]),
        *(Route(path, admin) for path in ADMIN),
        *(Route(path, dashboard) for path in DASHBOARD),
    ]
    if metrics is not None:
        read = metrics

        async def show_metrics(_request: Request) -> Response:
            return Response(render(await read()), headers={"content-type": CONTENT_TYPE})

        routes.append(Route("/metrics", show_metrics, methods=["GET"]))
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    no_route = app.router.not_found

    async def unmatched(scope: Scope, receive: Receive, send: Send) -> None:
        # A pattern stops at a line feed, and the path of who calls the API may have one.
        is_admin = scope["type"] == "http" and scope["path"].startswith(f"{ADMIN[0]}/")
        await (admin if is_admin else no_route)(scope, receive, send)

    app.router.default = unmatched
    return app


class OperationsServer(uvicorn.Server):
    """A uvicorn that leaves signals to the parent.

    Args:
        app: what it serves.
    """

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signal handlers alone."""
        yield

    async def run_on(self, listening: socket.socket) -> None:
        """Serve on an open socket until `should_exit` is set."""
        await self.serve(sockets=[listening])
