"""What a worker tells its supervisor, over a unix socket: alive, ready, numbers, drain, admin API.

Not reachable from outside: the supervisor answers the operations port for its whole group.
"""

from collections.abc import Callable

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from cluster_gw.server.serving import Current
from cluster_gw.telemetry.registry import Registry


class SnapshotState(msgspec.Struct, frozen=True, kw_only=True):
    """Version and age of the snapshot a worker ranks by; version 0 means none is used."""

    version: int = 0
    age_ms: int | None = None


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `/readyz`."""

    status: str
    config_version: int
    file_version: int
    snapshot: SnapshotState
    redis: str
    in_flight: int


class ControlPlane:
    """Answers the supervisor's questions.

    Args:
        current: state of the worker.
        registry: numbers of the worker.
        is_redis_up: whether calls to Redis are being answered.
        drain: begins the shutdown.
        monotonic_s: clock of the snapshot's age.
        admin: the admin API; whoever passes calls on to it has looked who they are from.
    """

    def __init__(
        self,
        current: Current,
        registry: Registry,
        is_redis_up: Callable[[], bool],
        drain: Callable[[], None],
        monotonic_s: Callable[[], float],
        admin: Starlette,
    ) -> None:
        self._admin = admin
        self._current = current
        self._registry = registry
        self._is_redis_up = is_redis_up
        self._drain = drain
        self._monotonic_s = monotonic_s

    def app(self) -> Starlette:
        """Assemble the routes of the control socket."""
        return Starlette(
            routes=[
                Route("/livez", self._livez, methods=["GET"]),
                Route("/readyz", self._readyz, methods=["GET"]),
                Route("/metrics.json", self._metrics, methods=["GET"]),
                Route("/drain", self._begin_drain, methods=["POST"]),
                Mount("", self._admin),
            ]
        )

    def readiness(self) -> Readiness:
        """Tell whether requests should be sent here."""
        is_up = self._is_redis_up()
        status = self._current.status
        if status == "ready" and not is_up:
            status = "degraded"
        return Readiness(
            status=status,
            config_version=self._current.serving.runtime.catalog.version,
            file_version=self._current.serving.file_version,
            snapshot=SnapshotState(
                version=self._current.view.snapshot.version,
                age_ms=self._current.view.age_ms(self._monotonic_s()),
            ),
            redis="ok" if is_up else "lost",
            in_flight=self._current.in_flight,
        )

    async def _livez(self, _request: Request) -> Response:
        return _json({"status": "ok"})

    async def _readyz(self, _request: Request) -> Response:
        readiness = self.readiness()
        ready = readiness.status in {"ready", "degraded"}
        return _json(readiness, 200 if ready else 503)

    async def _metrics(self, _request: Request) -> Response:
        return _json(self._registry.snapshot())

    async def _begin_drain(self, _request: Request) -> Response:
        self._drain()
        return _json({"status": "draining"}, 202)


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")
