"""`/api/combos`: the named chains of routes, and how each ranks its members."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.errors import ClientFault
from cluster_gw.server.admin.answers import invalid, listed, nothing_called, told
from cluster_gw.server.admin.desk import Desk
from cluster_gw.server.admin.editor import Change
from cluster_gw.server.admin.writing import read_fields, seen_version

MEMBERS: Final = "members"
ORDER: Final = "order"
READ_ONLY: Final = frozenset({"default", "all_routes", "profile"})


def combo_routes(desk: Desk) -> list[Route]:
    """Everything under `/api/combos`."""
    combos = Combos(desk)
    return [
        Route("/api/combos", combos.show_all, methods=["GET"]),
        Route("/api/combos/{id:path}", combos.show, methods=["GET"]),
        Route("/api/combos/{id:path}", combos.change, methods=["PUT"]),
        Route("/api/combos/{id:path}", combos.reset, methods=["DELETE"]),
    ]


class Combos:
    """Shows and changes combos."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show_all(self, _request: Request) -> Response:
        """List all combos, in declared order."""
        shown = self._desk.editor.shown()
        return listed([show_combo(self._desk, one) for one in shown["combos"]], self._version)

    async def show(self, request: Request) -> Response:
        """Show one combo."""
        return self._told(request.path_params["id"])

    async def change(self, request: Request) -> Response:
        """Change fields of one combo; null goes back to what the file says."""
        name: str = find_combo(self._desk, request.path_params["id"])["id"]
        read = await read_fields(request)
        fields = {field: value for field, value in read.items() if field not in READ_ONLY}
        if fields.pop("id", name) != name:
            raise ClientFault(invalid("the id of a combo cannot be changed", "id"))
        if MEMBERS in fields:
            fields[ORDER] = None  # it was an order of other members
        change = Change(noun=noun_of(self._desk, name), id=name, fields=fields)
        await self._desk.editor.write([change], seen_version(request))
        return self._told(name)

    async def reset(self, request: Request) -> Response:
        """Go back to what the file says of a combo; one that no file has stays as it was made."""
        name = find_combo(self._desk, request.path_params["id"])["id"]
        noun = noun_of(self._desk, name)
        change = Change(noun=noun, id=name, fields={}, remove=noun == "combos")
        await self._desk.editor.write([change], seen_version(request))
        return self._told(name)

    @property
    def _version(self) -> int:
        return self._desk.config_version

    def _told(self, name: str) -> Response:
        return told(show_combo(self._desk, find_combo(self._desk, name)), self._version)


def find_combo(desk: Desk, name: str) -> Mapping[str, Any]:
    """Give a combo as it holds now.

    Raises:
        ClientFault: there is none of this name.
    """
    for combo in desk.editor.shown()["combos"]:
        if combo["id"] == name:
            found: Mapping[str, Any] = combo
            return found
    raise nothing_called("combo", name)


def noun_of(desk: Desk, name: str) -> str:
    """Tell where changes of a combo stand: a profile that was made at run time is all overlay."""
    return "profiles" if name in desk.editor.patches().get("profiles", {}) else "combos"


def show_combo(desk: Desk, combo: Mapping[str, Any]) -> dict[str, Any]:
    """Give a combo with what its family decides where nothing is said, and every member."""
    catalog = desk.deps.current.serving.runtime.catalog
    held = catalog.combos[combo["id"]]
    sticky, gate = held.sticky, held.gate
    return {
        **combo,
        "strategy": held.strategy,
        "members": [{"route": one.route, "enabled": one.enabled} for one in held.members],
        "all_routes": combo["members"] == "all",
        "sticky": {
            "enabled": sticky.enabled,
            "scope": sticky.scope,
            "mode": "hard" if sticky.is_hard else "prefer",
            "ttl_s": sticky.ttl_s,
            "min_headroom": sticky.min_headroom,
        },
        "response": {**combo["response"], "reject_empty": gate.reject_empty},
        "default": combo["id"] == catalog.default_combo,
    }
