"""`/api/workers`: which workers there are. `/api/drain`: having some of them go out of use."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid, listed, nothing_called, read_object, told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.introduction import GROUP_HEADER

ACCEPTED: Final = 202
WORKER: Final = re.compile(r"[!-~]{1,128}")
MOST_NAMED: Final = 500
ALL: Final = "all"


def fleet_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/workers` and `/api/drain`."""
    fleet = FleetDesk(desk)
    return [
        Route("/api/workers", fleet.show_all, methods=["GET"]),
        Route("/api/drain", fleet.drain, methods=["POST"]),
        Route("/api/drain", fleet.rejoin, methods=["DELETE"]),
    ]


class FleetDesk:
    """Reads Redis, where all workers report."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show_all(self, _request: Request) -> Response:
        """List the workers of all groups that were heard within the last hour."""
        workers = await self._desk.fleet.list_workers(self._desk.now_ms())
        items = [msgspec.to_builtins(worker) for worker in workers]
        return listed(items, self._desk.config_version)

    async def drain(self, request: Request) -> Response:
        """Have a worker, those of this group, or all drained: load balancers send nothing more."""
        return await self._set(request, await read_object(request), drained=True)

    async def rejoin(self, request: Request) -> Response:
        """End that; `?worker=`, `?all=true`, or nothing for those of this group."""
        query = dict(request.query_params)
        if query.get(ALL) == "true":
            return await self._set(request, {**query, ALL: True}, drained=False)
        return await self._set(request, query, drained=False)

    async def _set(self, request: Request, asked: Mapping[str, Any], *, drained: bool) -> Response:
        worker, is_all = read_whom(asked)
        group = request.headers.get(GROUP_HEADER, "").split()
        named = [worker] if worker else group[:MOST_NAMED]
        if not named and not is_all:
            message = 'say whom: {"worker": ID}, as /api/workers lists them, or {"all": true}'
            raise ClientFault(invalid(message, "worker"))
        changed = await self._changed([] if is_all else named, drained=drained, is_one=bool(worker))
        document = {"drained": drained, "workers": None if is_all else named, "changed": changed}
        return told(document, self._desk.config_version, ACCEPTED if drained else 200)

    async def _changed(self, named: Sequence[str], *, drained: bool, is_one: bool) -> Sequence[str]:
        done = await self._desk.fleet.drain(named, drained=drained)
        if done.is_done:
            return done.workers
        if is_one:
            raise nothing_called("worker", done.workers[0])
        known = [name for name in named if name not in done.workers]  # others have not begun yet
        return (await self._desk.fleet.drain(known, drained=drained)).workers if known else ()


def read_whom(asked: Mapping[str, Any]) -> tuple[str | None, bool]:
    """Read whether one worker is meant, or all; neither is the group that was asked.

    Raises:
        ClientFault: it says something else, or both.
    """
    for name in asked:
        if name not in {"worker", ALL}:
            raise ClientFault(invalid(f"unknown field '{name[:80]}'", name[:80]))
    worker, is_all = asked.get("worker"), asked.get(ALL, False)
    if worker is not None and not (isinstance(worker, str) and WORKER.fullmatch(worker)):
        raise ClientFault(invalid("worker has to be the id of a worker", "worker"))
    if not isinstance(is_all, bool) or (is_all and worker is not None):
        raise ClientFault(invalid("all has to be true, and without a worker", ALL))
    return worker, is_all
